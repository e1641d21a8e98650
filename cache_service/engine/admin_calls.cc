#include "cache_service/engine/admin_calls.h"

#include "absl/strings/str_cat.h"

namespace quire {

Error WorkerNotFound(std::string_view name) {
  return MakeError(Reason::kWorkerNotFound,
                   absl::StrCat("no worker \"", std::string(name), "\" is attached"),
                   {{"worker", name}});
}

Error PinNotFound(std::string_view pin_id) {
  return MakeError(Reason::kPinNotFound, "the pin is unknown or has ended", {{"pin_id", pin_id}});
}

}  // namespace quire
