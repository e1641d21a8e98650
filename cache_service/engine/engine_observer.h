// What the engine needs from, and tells, the outside.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ENGINE_OBSERVER_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ENGINE_OBSERVER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache_service/engine/admin_calls.h"
#include "cache_service/engine/types.h"

namespace quire {

// Events are collected under the engine's lock and delivered after it, in order. Implementations
// must be thread-safe and may not call back into the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;

  // The lease ended (expired, displaced, detached, ended by an administrator): its word in the
  // control page must read "revoked" before anything else is promised to others.
  virtual void OnLeaseEnded(uint64_t /*lease_number*/) {}

  virtual void OnFinding(const AuditFinding& /*finding*/) {}
};

// Whether some process still maps the pool under a lease. Called under the engine's lock, so it
// must not block for long.
class MappingEvidence {
 public:
  virtual ~MappingEvidence() = default;
  // True if the worker's mappings exist (the first step of a lease with memory needs this).
  virtual bool IsMapped(uint64_t lease_number) = 0;
  // True if no process maps the pool under this lease any more.
  virtual bool IsGone(uint64_t lease_number) = 0;
};

// Reads and checks the bytes of sealed blocks (content audit); without one, content checks are off.
class BlockContents {
 public:
  virtual ~BlockContents() = default;

  // 128-bit checksum of a whole block. Called without the engine's lock; thread-safe.
  struct Checksum {
    uint64_t low = 0;
    uint64_t high = 0;
    friend bool operator==(const Checksum&, const Checksum&) = default;
  };

  virtual Checksum ChecksumOf(BlockId block, uint32_t group) = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ENGINE_OBSERVER_H_
