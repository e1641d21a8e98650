#include "tests/simulation/network.h"

namespace quire::simulation {
namespace {

// How long an end may not notice that a stream broke.
constexpr uint32_t kNoticeTicks = 20;

}  // namespace

StreamId Network::OpenStream(ProcessId process) {
  const StreamId stream = next_stream_++;
  streams_[stream] = {process};
  return stream;
}

void Network::BreakStream(StreamId stream, Tick now, bool process_lives) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.cut != ~Tick{0}) return;
  found->second.cut = now + Delay();
  requests_.Put(found->second.cut + random_.Below(kNoticeTicks),
                std::make_shared<Request>(Request{.call = Call::kStreamEnd, .stream = stream}));
  if (!process_lives) return;
  replies_.Put(now + random_.Below(kNoticeTicks),
               std::make_shared<Reply>(Reply{
                   .call = Call::kStreamEnd, .process = found->second.process, .stream = stream}));
}

void Network::ServerGone(Tick now) {
  for (const auto& [stream, state] : streams_) BreakStream(stream, now, true);
  requests_.Clear();
}

bool Network::Arrives(StreamId stream, Tick due) const {
  if (stream == 0) return true;
  const auto found = streams_.find(stream);
  return found != streams_.end() && due <= found->second.cut;
}

void Network::Send(Request request, Tick now) {
  const StreamId stream = request.stream;
  const auto message = std::make_shared<const Request>(std::move(request));
  if (stream != 0) {
    Stream& state = streams_.at(stream);
    state.last_request = std::max(state.last_request, now + Delay());
    requests_.Put(state.last_request, message);
    return;
  }
  if (random_.OneIn(plan_.lost)) return;
  // A call with a deadline is repeated by its caller only.
  const bool once = message->deadline != ~Tick{0};
  if (!once && random_.OneIn(plan_.repeated)) requests_.Put(now + 8 * Delay(), message);
  requests_.Put(now + Delay(), message);
}

void Network::Answer(Reply reply, Tick now) {
  const StreamId stream = reply.stream;
  const auto message = std::make_shared<const Reply>(std::move(reply));
  if (stream != 0) {
    Stream& state = streams_.at(stream);
    state.last_reply = std::max(state.last_reply, now + Delay());
    replies_.Put(state.last_reply, message);
    return;
  }
  if (random_.OneIn(plan_.lost)) return;
  if (random_.OneIn(plan_.repeated)) replies_.Put(now + 8 * Delay(), message);
  replies_.Put(now + Delay(), message);
}

std::shared_ptr<const Request> Network::NextRequest(Tick now) {
  Tick due = 0;
  while (std::shared_ptr<const Request> message = requests_.Take(now, due)) {
    if (message->call == Call::kStreamEnd || Arrives(message->stream, due)) return message;
  }
  return nullptr;
}

std::shared_ptr<const Reply> Network::NextReply(Tick now) {
  Tick due = 0;
  while (std::shared_ptr<const Reply> message = replies_.Take(now, due)) {
    if (message->call == Call::kStreamEnd || Arrives(message->stream, due)) return message;
  }
  return nullptr;
}

}  // namespace quire::simulation
