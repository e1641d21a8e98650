// Isolation domain of cached content, as an exact key.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_NAMESPACE_KEY_H_
#define QUIRE_CACHE_SERVICE_ENGINE_NAMESPACE_KEY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cache_service/base/error.h"

namespace quire {

// The parts a request names; fingerprint and layout tag (layout, dtype) come from attach and pool.
struct NamespaceParts {
  std::string adapter{};
  std::string salt{};
  std::string tenant{};
  std::string weights_version{};

  friend bool operator==(const NamespaceParts&, const NamespaceParts&) = default;
};

// Built from tagged, length-prefixed parts, so that two different namespaces never look equal.
// Content may be shared exactly where the keys are equal.
std::string NamespaceKey(const std::string& model_fingerprint, const std::string& layout_tag,
                         const NamespaceParts& parts);

using Digest = std::array<uint8_t, 32>;

// Input that is not tokens behind the placeholder tokens [start, end): the content of such a token
// is (id, digest, offset in the range).
struct DigestRange {
  uint32_t start = 0;
  uint32_t end = 0;
  Digest digest{};

  friend bool operator==(const DigestRange&, const DigestRange&) = default;
};

// Ranges must be in order, not empty, not overlapping and inside `length` tokens.
Error ValidateDigests(const std::vector<DigestRange>& digests, uint64_t length);

// Each part at most 1,024 bytes.
Error ValidateNamespace(const NamespaceParts& parts);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_NAMESPACE_KEY_H_
