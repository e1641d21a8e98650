// Prompts handed from a decoding process to a prefilling one and back.
//
// The two talk in lines of JSON over a socket: {"id": 1, "prompt": [..]} asks for a prompt,
// {"release": 1} says that its blocks are held by the asker, {"release": "all"} that none of those
// kept will be; {"done": 1} answers the first, also if the prompt could not be computed: the
// asker's begin then finds less.
#ifndef QUIRE_WORKER_RUNTIME_HANDOFF_H_
#define QUIRE_WORKER_RUNTIME_HANDOFF_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "worker/runtime/line_socket.h"
#include "worker/runtime/prefill_worker.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {

// The prefilling side: serves until the other side closes the socket.
absl::Status ServePrefill(PrefillWorker& worker, int fd);

// The decoding side: a workload whose requests become available once their prompts are computed, or
// when the other process has ended.
class HandoffWorkload final : public Workload {
 public:
  HandoffWorkload(std::unique_ptr<Workload> inner, int fd)
      : inner_(std::move(inner)), socket_(fd) {}

  std::optional<Request> Next() override;

  void OnResult(const RequestResult& result) override;

  bool exhausted() const override {
    return inner_->exhausted() && asked_.empty() && ready_.empty();
  }

  // The scheduler began a request.
  void OnBegun(const Request& request);

  // The server drains: this side begins nothing more there, and the server ends only once the other
  // one has given up what it keeps.
  void OnDraining();

 private:
  void TakeAllBack();

  std::unique_ptr<Workload> inner_;
  LineSocket socket_;
  std::map<uint64_t, Request> asked_;
  std::deque<Request> ready_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_HANDOFF_H_
