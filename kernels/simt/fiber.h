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

namespace quire::kernels::emulated {

// Where a stack stopped. Not movable once prepared; never moves to another CPU thread.
class Fiber {
 public:
  // Makes it start in `entry`, which must not return, on the `bytes` at `stack`.
  void Prepare(std::byte* stack, size_t bytes, void (*entry)());

  // Stops here and goes on in `other`; returns when someone switches back to this.
  void SwitchTo(Fiber& other) {
#ifdef QUIRE_SIMT_PORTABLE_FIBERS
    swapcontext(&context_, &other.context_);
#else
    quire_simt_switch(&stack_pointer_, other.stack_pointer_);
#endif
  }

 private:
#ifdef QUIRE_SIMT_PORTABLE_FIBERS
  ucontext_t context_;
#else
  void* stack_pointer_ = nullptr;
#endif
};

}  // namespace quire::kernels::emulated

#endif  // QUIRE_KERNELS_SIMT_FIBER_H_
