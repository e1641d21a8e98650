#include "kernels/simt/emulator.h"

#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace quire::kernels::emulated {
namespace {

using State = EmulatedThread::State;

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif
constexpr size_t kSharedAlignment = 1024;
// Reads as NaN in fp32, fp16, bf16 and e4m3.
constexpr int kPoison = 0xff;

const char* Name(Op op) {
  switch (op) {
    case Op::kNone:
      break;
    case Op::kSyncWarp:
      return "warp sync";
    case Op::kShuffle:
      return "shuffle";
    case Op::kBallot:
      return "ballot";
    case Op::kLoadMatrix:
      return "ldmatrix";
    case Op::kMma:
      return "mma";
  }
  return "collective";
}

std::string At(Op op, int line) {
  return std::string(Name(op)) + " of line " + std::to_string(line);
}

}  // namespace

constinit thread_local Emulator* Emulator::current_ = nullptr;

Emulator::Emulator(const EmulatorOptions& options) : options_(options) {}

std::string Emulator::Run(int64_t ctas, int threads, size_t shared_bytes,
                          const std::function<void()>& kernel) {
  if (threads < 1 || threads % kWarpSize != 0) return "threads must be a multiple of 32";
  kernel_ = &kernel;
  ctas_ = ctas;
  if (threads_count_ != threads) {
    threads_count_ = threads;
    threads_ = std::vector<EmulatedThread>(static_cast<size_t>(threads));
    warps_.resize(static_cast<size_t>(threads / kWarpSize));
    stacks_ = std::make_unique_for_overwrite<std::byte[]>(threads_.size() * kStackBytes);
  }
  shared_bytes_ = shared_bytes;
  shared_owner_.resize(shared_bytes + kSharedAlignment);
  const auto start = reinterpret_cast<uintptr_t>(shared_owner_.data());
  shared_ = shared_owner_.data() + (kSharedAlignment - start % kSharedAlignment);
  Emulator* const outer = current_;
  current_ = this;
  std::string fault;
  for (int64_t cta = 0; cta < ctas && fault.empty(); ++cta) fault = RunCta(cta);
  current_ = outer;
  return fault;
}

std::string Emulator::RunCta(int64_t cta) {
  cta_ = cta;
  fault_.clear();
  std::memset(shared_, kPoison, shared_bytes_);
  StartThreads();
  while (alive_ > 0 && fault_.empty()) {
    if (!RunWarps() && fault_.empty())
      fault_ = "CTA " + std::to_string(cta) + ": no thread can go on";
  }
#if defined(__SANITIZE_ADDRESS__)
  // Frames of threads that were given up.
  if (!fault_.empty()) __asan_unpoison_memory_region(stacks_.get(), threads_.size() * kStackBytes);
#endif
  return fault_;
}

void Emulator::StartThreads() {
  alive_ = threads_count_;
  at_barrier_ = 0;
  for (EmulatedWarp& warp : warps_) warp.arrived = 0;
  for (size_t i = 0; i < threads_.size(); ++i) {
    EmulatedThread& thread = threads_[i];
    thread.state = State::kReady;
    thread.index = static_cast<int>(i);
    thread.warp = thread.index / kWarpSize;
    thread.copies.clear();
    thread.waited.clear();
    thread.fiber.Prepare(stacks_.get() + i * kStackBytes, kStackBytes, &FiberMain);
  }
}

void Emulator::FiberMain() {
  Emulator& emulator = *current_;
  emulator.self_->fiber.Started();
  (*emulator.kernel_)();
  EmulatedThread& self = *emulator.self_;
  self.state = State::kDone;
  --emulator.alive_;
  if (emulator.alive_ > 0 && emulator.at_barrier_ == emulator.alive_) emulator.LeaveBarrier();
  emulator.Yield();
  __builtin_unreachable();
}

// One warp runs until it can go no further, then the next: warps drift as far apart as the barriers
// let them.
bool Emulator::RunWarps() {
  const int count = static_cast<int>(warps_.size());
  for (int i = 0; i < count; ++i) {
    const int warp = options_.last_warp_first ? count - 1 - i : i;
    EmulatedThread* lane = RunnableLane(warp, kWarpSize - 1);
    if (lane == nullptr) continue;
    self_ = lane;
    scheduler_.SwitchTo(lane->fiber);
    if (fault_.empty()) CheckStuckWarp(warp);
    return true;
  }
  return false;
}

bool Emulator::IsRunnable(const EmulatedThread& thread) const {
  switch (thread.state) {
    case State::kReady:
      return true;
    case State::kInCollective:
      return warps_[static_cast<size_t>(thread.warp)].phase != thread.phase;
    case State::kAtBarrier:
      return barrier_phase_ != thread.phase;
    case State::kDone:
      break;
  }
  return false;
}

EmulatedThread* Emulator::RunnableLane(int warp, int after) {
  EmulatedThread* lanes = threads_.data() + warp * kWarpSize;
  for (int i = 1; i <= kWarpSize; ++i) {
    EmulatedThread& lane = lanes[(after + i) % kWarpSize];
    if (IsRunnable(lane)) return &lane;
  }
  return nullptr;
}

// Lanes that wait for others which are at the CTA barrier, or gone, wait for ever.
void Emulator::CheckStuckWarp(int warp) {
  const EmulatedWarp& state = warps_[static_cast<size_t>(warp)];
  if (state.arrived == 0) return;
  for (int i = 0; i < kWarpSize; ++i) {
    const EmulatedThread& lane = threads_[static_cast<size_t>(warp * kWarpSize + i)];
    if (lane.state == State::kInCollective) continue;
    fault_ = NameOf(lane) + (lane.state == State::kDone ? " returned" : " is at the CTA barrier") +
             ", but thread " + std::to_string(state.first) + " waits for it in " +
             At(state.op, state.line);
    return;
  }
}

void Emulator::Yield() {
  EmulatedThread* const from = self_;
  EmulatedThread* const next = RunnableLane(from->warp, from->index % kWarpSize);
  if (next == from) return;
  self_ = next;
  from->fiber.SwitchTo(next != nullptr ? next->fiber : scheduler_);
}

Exchange& Emulator::Enter(Op op, int line) {
  EmulatedWarp& warp = warps_[static_cast<size_t>(self_->warp)];
  if (warp.arrived == 0) {
    warp.op = op;
    warp.line = line;
    warp.first = self_->index;
  } else if (warp.op != op || warp.line != line) {
    Report("enters " + At(op, line) + " while thread " + std::to_string(warp.first) + " is in " +
           At(warp.op, warp.line));
    GiveUp();
  }
  return warp.exchange[warp.phase % 2];
}

bool Emulator::Meet() {
  EmulatedWarp& warp = warps_[static_cast<size_t>(self_->warp)];
  if (++warp.arrived == kWarpSize) return true;
  self_->state = State::kInCollective;
  self_->phase = warp.phase;
  Yield();
  self_->state = State::kReady;
  return false;
}

void Emulator::Release() {
  EmulatedWarp& warp = warps_[static_cast<size_t>(self_->warp)];
  warp.arrived = 0;
  ++warp.phase;
}

void Emulator::SyncWarp(int line) {
  Land(self_->waited);
  Enter(Op::kSyncWarp, line);
  if (Meet()) Release();
}

void Emulator::SyncCta() {
  Land(self_->waited);
  if (++at_barrier_ == alive_) {
    LeaveBarrier();
    return;
  }
  self_->state = State::kAtBarrier;
  self_->phase = barrier_phase_;
  Yield();
  self_->state = State::kReady;
}

void Emulator::LeaveBarrier() {
  at_barrier_ = 0;
  ++barrier_phase_;
}

void Emulator::CopyAsync(void* shared, const void* global, uint32_t bytes, bool exists) {
  CheckShared(shared, bytes, "asynchronous copy");
  if (reinterpret_cast<uintptr_t>(shared) % bytes != 0 ||
      (exists && reinterpret_cast<uintptr_t>(global) % bytes != 0)) {
    Report("issues a misaligned " + std::to_string(bytes) + "-byte copy");
    GiveUp();
  }
  auto* to = static_cast<std::byte*>(shared);
  self_->copies.push_back(
      {to, exists ? static_cast<const std::byte*>(global) : nullptr, bytes, self_->copy_group});
  if (options_.visibility == CopyVisibility::kAtIssue) {
    Land(self_->copies);
  } else {
    std::memset(to, kPoison, bytes);
  }
}

void Emulator::CommitCopies() { ++self_->copy_group; }

void Emulator::WaitCopies(uint32_t newest_left) {
  std::vector<PendingCopy>& copies = self_->copies;
  const auto kept = std::find_if(copies.begin(), copies.end(), [&](const PendingCopy& copy) {
    return copy.group + newest_left >= self_->copy_group;
  });
  self_->waited.insert(self_->waited.end(), copies.begin(), kept);
  copies.erase(copies.begin(), kept);
  if (options_.visibility != CopyVisibility::kAtSync) Land(self_->waited);
}

void Emulator::Land(std::vector<PendingCopy>& copies) {
  for (const PendingCopy& copy : copies) {
    if (copy.from != nullptr) {
      std::memcpy(copy.to, copy.from, copy.bytes);
    } else {
      std::memset(copy.to, 0, copy.bytes);
    }
  }
  copies.clear();
}

void Emulator::CheckAligned(const void* address, const char* what) {
  if (reinterpret_cast<uintptr_t>(address) % 16 == 0) return;
  Report(std::string("does a misaligned 16-byte ") + what);
  GiveUp();
}

void Emulator::CheckShared(const void* address, size_t bytes, const char* what) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto start = reinterpret_cast<uintptr_t>(shared_);
  if (at >= start && at + bytes <= start + shared_bytes_) return;
  Report(std::string("leaves shared memory with a ") + what + " at offset " +
         std::to_string(static_cast<int64_t>(at - start)));
  GiveUp();
}

std::string Emulator::NameOf(const EmulatedThread& thread) const {
  return "CTA " + std::to_string(cta_) + " thread " + std::to_string(thread.index);
}

void Emulator::Report(const std::string& reason) { fault_ = NameOf(*self_) + " " + reason; }

void Emulator::GiveUp() {
  self_->fiber.SwitchTo(scheduler_);
  __builtin_unreachable();
}

}  // namespace quire::kernels::emulated
