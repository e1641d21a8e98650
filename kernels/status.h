// The result of a kernel call: a code, the argument at fault, and a message with the numbers.
//
// No kernel throws, exits or aborts. A call that returns anything but kOk has read no tensor and
// written nothing, unless its comment says otherwise.
#ifndef QUIRE_KERNELS_STATUS_H_
#define QUIRE_KERNELS_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace quire::kernels {

enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument = 1,  // the named argument can never be right as given
  kOutOfRange = 2,       // an id, length or target outside the pool or the table
  kUnsupported = 3,      // valid, but this backend does not do it
  kNoSpace = 4,          // workspace or destination smaller than stated
  kInternal = 5,         // memory or threads could not be had
};

class [[nodiscard]] Status {
 public:
  Status() = default;

  // `argument` names the parameter as the header spells it, for example "table.ids".
  Status(StatusCode code, std::string_view argument, std::string message)
      : code_(code), argument_(argument), message_(std::move(message)) {}

  static Status Ok() { return Status(); }

  static Status Invalid(std::string_view argument, std::string message) {
    return Status(StatusCode::kInvalidArgument, argument, std::move(message));
  }

  static Status OutOfRange(std::string_view argument, std::string message) {
    return Status(StatusCode::kOutOfRange, argument, std::move(message));
  }

  bool ok() const { return code_ == StatusCode::kOk; }

  StatusCode code() const { return code_; }

  const std::string& argument() const { return argument_; }

  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string argument_;
  std::string message_;
};

// A value or the status that explains its absence. Dereference only when ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }

  const Status& status() const { return status_; }

  T& operator*() { return *value_; }

  const T& operator*() const { return *value_; }

  T* operator->() { return &*value_; }

  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_STATUS_H_
