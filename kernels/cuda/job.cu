#include <algorithm>
#include <bit>

#include "kernels/cuda/job.h"

namespace quire::kernels::QUIRE_SIMT {
namespace {

constexpr size_t kLeastPiece = 64 << 10;

}  // namespace

Arena::~Arena() {
  for (const Piece& piece : pieces_) device_.Free(piece.memory);
}

Status Arena::Collect() {
  for (size_t i = 0; i < pending_.size();) {
    const Result<bool> passed = device_.HasPassed(pending_[i].event);
    if (!passed.ok()) return passed.status();
    if (!*passed) {
      ++i;
      continue;
    }
    for (size_t piece : pending_[i].pieces) pieces_[piece].busy = false;
    device_.Release(pending_[i].event);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return Status::Ok();
}

Result<size_t> Arena::Take(size_t bytes) {
  if (Status s = Collect(); !s.ok()) return s;
  size_t best = pieces_.size();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].busy || pieces_[i].bytes < bytes) continue;
    if (best == pieces_.size() || pieces_[i].bytes < pieces_[best].bytes) best = i;
  }
  if (best == pieces_.size()) {
    const size_t size = std::bit_ceil(std::max(bytes, kLeastPiece));
    const Result<std::byte*> memory = device_.Allocate(size);
    if (!memory.ok()) return memory.status();
    pieces_.push_back({*memory, size, false});
  }
  pieces_[best].busy = true;
  return best;
}

Status Arena::GiveBack(const std::vector<size_t>& pieces, StreamId stream) {
  if (pieces.empty()) return Status::Ok();
  const Result<EventId> event = device_.Record(stream);
  if (!event.ok()) return event.status();
  pending_.push_back({*event, pieces});
  return Status::Ok();
}

Result<const std::byte*> Arena::Upload(const Pack& pack, StreamId stream) {
  const bool known =
      !uploaded_piece_.empty() && uploaded_stream_ == stream && uploaded_ == pack.bytes();
  if (!known) {
    if (Status s = GiveBack(uploaded_piece_, uploaded_stream_); !s.ok()) return s;
    uploaded_piece_.clear();
    const Result<size_t> piece = Take(pack.bytes().size());
    if (!piece.ok()) return piece.status();
    Status s = device_.Copy(stream, At(*piece), pack.bytes().data(), pack.bytes().size());
    if (!s.ok()) return s;
    uploaded_piece_ = {*piece};
    uploaded_ = pack.bytes();
    uploaded_stream_ = stream;
  }
  return static_cast<const std::byte*>(At(uploaded_piece_[0]));
}

std::byte* Job::Scratch(size_t bytes) {
  if (!status_.ok()) return nullptr;
  const Result<size_t> piece = arena_.Take(bytes);
  if (!piece.ok()) {
    status_ = piece.status();
    return nullptr;
  }
  pieces_.push_back(*piece);
  return arena_.At(*piece);
}

std::byte* Job::Reachable(std::byte* memory, size_t bytes) {
  if (bytes == 0 || device_.IsReachable(memory)) return memory;
  return Scratch(bytes);
}

void Job::Copy(void* to, const void* from, size_t bytes) {
  if (status_.ok()) status_ = device_.Copy(stream_, to, from, bytes);
}

bool Job::IsUsable(const void* data, size_t bytes, size_t alignment) const {
  if (bytes == 0) return true;
  return reinterpret_cast<uintptr_t>(data) % alignment == 0 && device_.IsReachable(data);
}

const std::byte* Job::In(const void* data, size_t bytes, size_t alignment) {
  if (IsUsable(data, bytes, alignment)) return static_cast<const std::byte*>(data);
  std::byte* const staged = Scratch(bytes);
  Copy(staged, data, bytes);
  return staged;
}

std::byte* Job::InOut(void* data, size_t bytes, size_t alignment) {
  if (IsUsable(data, bytes, alignment)) return static_cast<std::byte*>(data);
  std::byte* const staged = Scratch(bytes);
  Copy(staged, data, bytes);
  if (status_.ok()) backs_.push_back({data, staged, bytes});
  return staged;
}

const std::byte* Job::Upload(const Pack& pack) {
  if (!status_.ok()) return nullptr;
  const Result<const std::byte*> base = arena_.Upload(pack, stream_);
  if (!base.ok()) status_ = base.status();
  return base.ok() ? *base : nullptr;
}

void Job::Zero(std::byte* memory, size_t bytes) {
  if (status_.ok()) status_ = device_.Zero(stream_, memory, bytes);
}

Status Job::Finish() {
  for (const Back& back : backs_) Copy(back.to, back.from, back.bytes);
  if (Status s = arena_.GiveBack(pieces_, stream_); status_.ok() && !s.ok()) status_ = s;
  if (status_.ok() && stream_ == kDefaultStream) status_ = device_.Synchronize(stream_);
  return status_;
}

}  // namespace quire::kernels::QUIRE_SIMT
