#include "cache_service/engine/namespace_key.h"

#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr size_t kMaxPartBytes = 1024;

// Tag, then the length in eight bytes, then the bytes: no two lists of parts give the same text.
void AppendPart(char tag, std::string_view part, std::string& key) {
  std::array<char, 9> head{tag};
  for (size_t i = 0; i < 8; ++i) head[1 + i] = static_cast<char>(part.size() >> (8 * i));
  key.append(head.data(), head.size()).append(part);
}

Error ValidatePart(const char* field, std::string_view part) {
  if (part.size() <= kMaxPartBytes) return {};
  return InvalidArgument(absl::StrCat("namespace.", field), "too long",
                         {{"given", part.size()}, {"limit", kMaxPartBytes}, {"unit", "bytes"}});
}

}  // namespace

std::string NamespaceKey(const std::string& model_fingerprint, const std::string& layout_tag,
                         const NamespaceParts& parts) {
  std::string key;
  key.reserve(6 * 9 + model_fingerprint.size() + layout_tag.size() + parts.adapter.size() +
              parts.salt.size() + parts.tenant.size() + parts.weights_version.size());
  AppendPart('m', model_fingerprint, key);
  AppendPart('l', layout_tag, key);
  AppendPart('a', parts.adapter, key);
  AppendPart('s', parts.salt, key);
  AppendPart('t', parts.tenant, key);
  AppendPart('w', parts.weights_version, key);
  return key;
}

Error ValidateDigests(const std::vector<DigestRange>& digests, uint64_t length) {
  uint32_t previous_end = 0;
  for (size_t i = 0; i < digests.size(); ++i) {
    const DigestRange& range = digests[i];
    if (range.start < previous_end) {
      return InvalidArgument(absl::StrCat("digests[", i, "].start"),
                             "inside or before the range before it",
                             {{"given", range.start}, {"limit", previous_end}});
    }
    if (range.end <= range.start) {
      return InvalidArgument(absl::StrCat("digests[", i, "].end"), "not after the start",
                             {{"given", range.end}, {"limit", range.start}});
    }
    if (range.end > length) {
      return InvalidArgument(absl::StrCat("digests[", i, "].end"), "beyond the tokens",
                             {{"given", range.end}, {"limit", length}});
    }
    previous_end = range.end;
  }
  return {};
}

Error ValidateNamespace(const NamespaceParts& parts) {
  if (Error error = ValidatePart("adapter", parts.adapter); !error.ok()) return error;
  if (Error error = ValidatePart("salt", parts.salt); !error.ok()) return error;
  if (Error error = ValidatePart("tenant", parts.tenant); !error.ok()) return error;
  return ValidatePart("weights_version", parts.weights_version);
}

}  // namespace quire
