// What a worker generated, a line of JSON per finished request.
//
//   {"id": 7, "seed": 8, "temperature": 0.7, "prompt": [..], "outputs": [[..], ..]}
#ifndef QUIRE_WORKER_RUNTIME_TEXT_LOG_H_
#define QUIRE_WORKER_RUNTIME_TEXT_LOG_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {

// Appends to a file; a line is written whole or not at all. Owns the descriptor. Not thread-safe.
class TextLog {
 public:
  static absl::StatusOr<std::unique_ptr<TextLog>> Open(const std::string& path);
  ~TextLog();
  TextLog(const TextLog&) = delete;
  TextLog& operator=(const TextLog&) = delete;

  absl::Status Write(const RequestResult& result);

 private:
  explicit TextLog(int fd) : fd_(fd) {}

  const int fd_;
};

// The requests and outputs of a log, without logits. A line that was cut off is left out.
absl::StatusOr<std::vector<RequestResult>> ReadTexts(const std::string& path);

// A workload whose good results are written down. A text that cannot be written fails loudly on the
// standard error and stops nothing.
class LoggedWorkload final : public Workload {
 public:
  LoggedWorkload(std::unique_ptr<Workload> inner, std::unique_ptr<TextLog> log)
      : inner_(std::move(inner)), log_(std::move(log)) {}

  std::optional<Request> Next() override { return inner_->Next(); }

  void OnResult(const RequestResult& result) override;

  bool exhausted() const override { return inner_->exhausted(); }

 private:
  std::unique_ptr<Workload> inner_;
  std::unique_ptr<TextLog> log_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_TEXT_LOG_H_
