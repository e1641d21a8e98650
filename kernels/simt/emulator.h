// Runs a CUDA kernel on one CPU thread: one fiber per CUDA thread, one CTA after another.
//
//   Emulator emulator({.visibility = CopyVisibility::kAtSync});
//   std::string fault = emulator.Run(8, 128, shared_bytes, [&] { MyKernel(args); });
//
// It looks for what a GPU hides. Shared memory holds NaN when a CTA starts, and so does the target
// of an asynchronous copy until the copy becomes visible. A collective that some lanes of its warp
// miss, a misaligned copy or a copy outside shared memory ends the launch: Run then returns a text
// with CTA, thread and reason, and never hangs. Not seen: races between CTAs, weak memory order of
// plain stores, bank conflicts, anything that only ptxas knows.
//
// Not thread-safe; different objects may run on different threads.
#ifndef QUIRE_KERNELS_SIMT_EMULATOR_H_
#define QUIRE_KERNELS_SIMT_EMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simt/fiber.h"

namespace quire::kernels::emulated {

// When the bytes of cp.async can be read.
enum class CopyVisibility {
  kAtIssue,  // the earliest that hardware may do
  kAtWait,   // when the issuing thread has waited for them
  kAtSync,   // and then synchronised with others: all that other threads may rely on
};

struct EmulatorOptions {
  CopyVisibility visibility = CopyVisibility::kAtSync;
  bool last_warp_first = false;  // which warp runs ahead of the others
};

enum class Op : uint8_t { kNone, kSyncWarp, kShuffle, kBallot, kLoadMatrix, kMma };

constexpr int kWarpSize = 32;

// What the lanes of a warp hand each other in one collective.
struct Exchange {
  uint32_t word[kWarpSize];
  const std::byte* address[kWarpSize];
  uint32_t a[kWarpSize][4];
  uint32_t b[kWarpSize][2];
  float c[kWarpSize][4];
  uint32_t out[kWarpSize][4];
};

struct PendingCopy {
  std::byte* to;
  const std::byte* from;  // null: zeros
  uint32_t bytes;
  uint32_t group;
};

struct EmulatedThread {
  enum class State : uint8_t { kReady, kInCollective, kAtBarrier, kDone };

  Fiber fiber;
  State state = State::kReady;
  int index = 0;
  int warp = 0;
  uint32_t phase = 0;  // of the collective or barrier it waits in
  uint32_t copy_group = 0;
  std::vector<PendingCopy> copies;  // issued, not waited for
  std::vector<PendingCopy> waited;  // not yet visible to others
};

struct EmulatedWarp {
  uint32_t phase = 0;  // collectives completed
  int arrived = 0;
  Op op = Op::kNone;  // of the first lane to arrive
  int line = 0;
  int first = 0;
  // Two, as a lane may be in the next collective while others still read the results of this one.
  Exchange exchange[2];
};

class Emulator {
 public:
  explicit Emulator(const EmulatorOptions& options);

  const EmulatorOptions& options() const { return options_; }

  // Runs `kernel` in ctas * threads fibers (threads: a multiple of 32). "" or the fault.
  std::string Run(int64_t ctas, int threads, size_t shared_bytes,
                  const std::function<void()>& kernel);

  // For the wrappers in device code ------------------------------------------------------------

  static Emulator& Current() { return *current_; }

  EmulatedThread& self() { return *self_; }

  int64_t cta() const { return cta_; }

  int64_t ctas() const { return ctas_; }

  std::byte* shared() { return shared_; }

  // The buffer of the collective that this lane enters; Meet() completes it.
  Exchange& Enter(Op op, int line);

  // True for the last lane: it does the work of the warp and then calls Release(). The others
  // return false when that is done.
  bool Meet();
  void Release();

  void SyncCta();
  void SyncWarp(int line);

  void CopyAsync(void* shared, const void* global, uint32_t bytes, bool exists);
  void CommitCopies();
  void WaitCopies(uint32_t newest_left);

  void CheckAligned(const void* address, const char* what);
  void CheckShared(const void* address, size_t bytes, const char* what);

 private:
  static void FiberMain();

  std::string RunCta(int64_t cta);
  void StartThreads();
  bool RunWarps();
  bool IsRunnable(const EmulatedThread& thread) const;
  EmulatedThread* RunnableLane(int warp, int after);
  void CheckStuckWarp(int warp);
  void Yield();
  void LeaveBarrier();
  // Sets fault_. A statement of its own: the frame of a fiber that gives up is never left, so what
  // it owns then is lost.
  void Report(const std::string& reason);
  // Ends the launch; does not return.
  [[noreturn]] void GiveUp();
  void Land(std::vector<PendingCopy>& copies);
  std::string NameOf(const EmulatedThread& thread) const;

  // Constant initialisation: no wrapper function around each access, which UBSan takes for null.
  static constinit thread_local Emulator* current_;

  const EmulatorOptions options_;
  const std::function<void()>* kernel_ = nullptr;
  int64_t cta_ = 0;
  int64_t ctas_ = 0;
  int threads_count_ = 0;
  size_t shared_bytes_ = 0;
  std::vector<std::byte> shared_owner_;
  std::byte* shared_ = nullptr;  // inside shared_owner_, aligned
  std::unique_ptr<std::byte[]> stacks_;
  std::vector<EmulatedThread> threads_;
  std::vector<EmulatedWarp> warps_;
  EmulatedThread* self_ = nullptr;
  Fiber scheduler_;
  int alive_ = 0;
  int at_barrier_ = 0;
  uint32_t barrier_phase_ = 0;
  std::string fault_;
};

}  // namespace quire::kernels::emulated

#endif  // QUIRE_KERNELS_SIMT_EMULATOR_H_
