#include "cache_service/base/command_line.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

constexpr std::string_view kNo = "no";

// "--flag=value" in parts.
struct Argument {
  std::string flag;
  std::optional<std::string> value;
};

Argument Split(std::string_view text) {
  text.remove_prefix(text.starts_with("--") ? 2 : 1);
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {std::string(text), std::nullopt};
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

bool IsBool(const std::string& flag) {
  const absl::CommandLineFlag* found = absl::FindCommandLineFlag(flag);
  return found != nullptr && found->IsOfType<bool>();
}

// "--flag" and "--noflag" of a bool.
void CompleteBool(Argument& argument) {
  if (argument.value.has_value()) return;
  if (IsBool(argument.flag)) {
    argument.value = "true";
  } else if (argument.flag.starts_with(kNo) && IsBool(argument.flag.substr(kNo.size()))) {
    argument.flag.erase(0, kNo.size());
    argument.value = "false";
  }
}

bool IsInteger(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "A to B" of a flag of integers, otherwise empty.
template <typename... Integers>
std::string RangeOf(const absl::CommandLineFlag& flag) {
  std::string range;
  const auto try_one = [&]<typename Integer>(Integer) {
    using Limits = std::numeric_limits<Integer>;
    if (flag.IsOfType<Integer>()) range = absl::StrCat(Limits::min(), " to ", Limits::max());
  };
  (try_one(Integers()), ...);
  return range;
}

// The library says only that the value is illegal.
std::string ProblemOf(const absl::CommandLineFlag& flag, const std::string& text,
                      const std::string& error) {
  const std::string range = RangeOf<int32_t, uint32_t, int64_t, uint64_t>(flag);
  if (range.empty()) {
    return absl::StrCat("cannot be \"", text, "\"", error.empty() ? "" : ": ", error);
  }
  if (!IsInteger(text)) return absl::StrCat("not a whole number: ", text);
  return absl::StrCat(text, " is not from ", range);
}

}  // namespace

bool HasWord(int argc, char** argv, std::string_view flag) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text.starts_with("-") && Split(text).flag == flag && !Split(text).value) return true;
  }
  return false;
}

absl::Status SetFlag(const std::string& flag, const std::string& text, std::string_view shown) {
  absl::CommandLineFlag* found = absl::FindCommandLineFlag(flag);
  if (found == nullptr) return ToStatus(InvalidArgument(shown, "unknown option; see --help"));
  if (text.empty()) return ToStatus(InvalidArgument(shown, "needs a value"));
  std::string error;
  if (found->ParseFrom(text, &error)) return absl::OkStatus();
  return ToStatus(InvalidArgument(shown, ProblemOf(*found, text, error), {{"given", text}}));
}

absl::StatusOr<std::vector<std::string>> SetFlags(int argc, char** argv) {
  std::vector<std::string> words;
  bool flags_may_come = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (!flags_may_come || text.size() < 2 || text[0] != '-') {
      words.emplace_back(text);
      continue;
    }
    if (text == "--") {
      flags_may_come = false;
      continue;
    }
    Argument argument = Split(text);
    CompleteBool(argument);
    const std::string shown = "--" + argument.flag;
    const bool known = absl::FindCommandLineFlag(argument.flag) != nullptr;
    if (known && !argument.value.has_value()) {
      if (++i == argc) return ToStatus(InvalidArgument(shown, "needs a value"));
      argument.value = argv[i];
    }
    const absl::Status status = SetFlag(argument.flag, argument.value.value_or(""), shown);
    if (!status.ok()) return status;
  }
  return words;
}

}  // namespace quire
