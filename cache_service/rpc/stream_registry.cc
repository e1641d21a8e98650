#include "cache_service/rpc/stream_registry.h"

namespace quire {

void StreamRegistry::Add(EndableStream* stream) {
  MutexLock lock(mutex_);
  open_.insert(stream);
  if (ended_) stream->End(end_status_);
}

void StreamRegistry::Serve(const std::string& lease, EndableStream* stream) {
  MutexLock lock(mutex_);
  EndableStream*& current = by_lease_[lease];
  if (current != nullptr && current != stream) {
    current->End(grpc::Status(grpc::StatusCode::CANCELLED, "a newer stream serves this lease"));
  }
  current = stream;
}

bool StreamRegistry::Remove(const std::string& lease, EndableStream* stream) {
  MutexLock lock(mutex_);
  open_.erase(stream);
  const auto it = by_lease_.find(lease);
  if (it == by_lease_.end() || it->second != stream) return false;
  by_lease_.erase(it);
  return true;
}

void StreamRegistry::EndAll(const grpc::Status& status) {
  MutexLock lock(mutex_);
  ended_ = true;
  end_status_ = status;
  for (EndableStream* stream : open_) stream->End(status);
}

}  // namespace quire
