// Plain names for the numbers that cross the engine's boundary.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_TYPES_H_
#define QUIRE_CACHE_SERVICE_ENGINE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quire {

// A block of the pool. 0 is a real block; ids are at most 2^31 - 2.
enum class BlockId : uint32_t {};
inline constexpr BlockId kNoBlock{0xFFFFFFFFu};

constexpr uint32_t Index(BlockId block) { return static_cast<uint32_t>(block); }

using TokenId = uint32_t;
// Chosen by the worker, valid within its lease.
using SequenceHandle = uint64_t;
// Steps of one lease count 1, 2, 3...; 0 means "none yet".
using StepNumber = uint64_t;
// One life of the server.
using Epoch = uint64_t;
using LeaseId = std::string;
// Tenant of whoever calls; absent: may act for every tenant.
using CallerTenant = std::optional<std::string_view>;

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_TYPES_H_
