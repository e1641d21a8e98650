// A second stack to run on: the least that is needed to have thousands of CUDA threads on one CPU
// thread.
//
// x86-64 switches with fifteen instructions of its own; elsewhere, or with
// QUIRE_SIMT_PORTABLE_FIBERS, with ucontext, which is about ten times slower.
#ifndef QUIRE_KERNELS_SIMT_FIBER_H_
#define QUIRE_KERNELS_SIMT_FIBER_H_

#include <cstddef>

#if !defined(__x86_64__) && !defined(QUIRE_SIMT_PORTABLE_FIBERS)
#define QUIRE_SIMT_PORTABLE_FIBERS
#endif

#ifdef QUIRE_SIMT_PORTABLE_FIBERS
#include <ucontext.h>
#else
extern "C" void quire_simt_switch(void** save, void* load);
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace quire::kernels::emulated {

// Where a stack stopped. Not movable once prepared; never moves to another CPU thread.
class Fiber {
 public:
  // Makes it start in `entry`, which must not return, on the `bytes` at `stack`.
  void Prepare(std::byte* stack, size_t bytes, void (*entry)());

  // To be called first in `entry`.
  void Started() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &from_->stack_, &from_->stack_bytes_);
#endif
  }

  // Stops here and goes on in `other`; returns when someone switches back to this.
  void SwitchTo(Fiber& other) {
#ifdef __SANITIZE_ADDRESS__
    other.from_ = this;
    __sanitizer_start_switch_fiber(&fake_stack_, other.stack_, other.stack_bytes_);
#endif
    Switch(other);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
  }

 private:
  void Switch(Fiber& other) {
#ifdef QUIRE_SIMT_PORTABLE_FIBERS
    swapcontext(&context_, &other.context_);
#else
    quire_simt_switch(&stack_pointer_, other.stack_pointer_);
#endif
  }

#ifdef __SANITIZE_ADDRESS__
  // Which stack the sanitizer is on. The bounds of a thread's own stack are learnt when it first
  // leaves it.
  Fiber* from_ = nullptr;
  const void* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
#endif
#ifdef QUIRE_SIMT_PORTABLE_FIBERS
  ucontext_t context_;
#else
  void* stack_pointer_ = nullptr;
#endif
};

}  // namespace quire::kernels::emulated

#endif  // QUIRE_KERNELS_SIMT_FIBER_H_
