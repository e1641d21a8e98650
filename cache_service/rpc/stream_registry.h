// Which stream serves which lease: at most one.
#ifndef QUIRE_CACHE_SERVICE_RPC_STREAM_REGISTRY_H_
#define QUIRE_CACHE_SERVICE_RPC_STREAM_REGISTRY_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "cache_service/base/mutex.h"

namespace quire {

// A stream as the registry sees it.
class EndableStream {
 public:
  virtual ~EndableStream() = default;
  // Ends the stream, unless it has ended. Never blocks.
  virtual void End(const grpc::Status& status) = 0;
};

// Thread-safe. A stream stays valid until Remove returned.
class StreamRegistry {
 public:
  // Every open stream, whether it has a lease yet or not. After EndAll it is ended at once.
  void Add(EndableStream* stream);
  // The stream serves the lease from now on; the one that did before is ended.
  void Serve(const std::string& lease, EndableStream* stream);
  // Whether the stream was the one that served the lease.
  bool Remove(const std::string& lease, EndableStream* stream);
  // Ends all streams, and those to come.
  void EndAll(const grpc::Status& status);

 private:
  Mutex mutex_;
  absl::flat_hash_set<EndableStream*> open_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, EndableStream*> by_lease_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status end_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_STREAM_REGISTRY_H_
