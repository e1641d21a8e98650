// Messages under way. On a stream they keep their order and all arrive, until it breaks: then what
// is under way arrives up to some moment and both ends learn of it later. Calls of their own are
// lost, repeated and overtake each other. Not thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_NETWORK_H_
#define QUIRE_TESTS_SIMULATION_NETWORK_H_

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simulation/message.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/random.h"

namespace quire::simulation {

// Messages of one direction by the time of their arrival.
template <typename Message>
class Postbag {
 public:
  using Ptr = std::shared_ptr<const Message>;

  void Put(Tick due, Ptr message) {
    items_.push_back({due, next_++, std::move(message)});
    std::push_heap(items_.begin(), items_.end(), Later);
  }

  // The next message that has arrived by `now`, or null.
  Ptr Take(Tick now, Tick& due) {
    if (items_.empty() || items_.front().due > now) return nullptr;
    std::pop_heap(items_.begin(), items_.end(), Later);
    Item item = std::move(items_.back());
    items_.pop_back();
    due = item.due;
    return std::move(item.message);
  }

  void Clear() { items_.clear(); }

 private:
  struct Item {
    Tick due;
    uint64_t order;
    Ptr message;
  };

  static bool Later(const Item& a, const Item& b) {
    return a.due != b.due ? a.due > b.due : a.order > b.order;
  }

  std::vector<Item> items_;
  uint64_t next_ = 0;
};

class Network {
 public:
  Network(const NetworkPlan& plan, Random& random) : plan_(plan), random_(random) {}

  StreamId OpenStream(ProcessId process);
  // Both ends learn of it within a while; `process_lives` is false if only the server can.
  void BreakStream(StreamId stream, Tick now, bool process_lives);
  // The server has ended: nothing arrives at it any more, and all streams break.
  void ServerGone(Tick now);

  void Send(Request request, Tick now);
  void Answer(Reply reply, Tick now);
  // The next one that has arrived, or null.
  std::shared_ptr<const Request> NextRequest(Tick now);
  std::shared_ptr<const Reply> NextReply(Tick now);

 private:
  struct Stream {
    ProcessId process;
    Tick last_request = 0;
    Tick last_reply = 0;
    // After this nothing arrives.
    Tick cut = ~Tick{0};
  };

  bool Arrives(StreamId stream, Tick due) const;

  Tick Delay() { return random_.Below(static_cast<uint32_t>(plan_.longest_delay) + 1); }

  const NetworkPlan plan_;
  Random& random_;
  Postbag<Request> requests_;
  Postbag<Reply> replies_;
  std::map<StreamId, Stream> streams_;
  StreamId next_stream_ = 1;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_NETWORK_H_
