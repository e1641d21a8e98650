#include "kernels/simt/fiber.h"

#include <cstdint>

#ifdef QUIRE_SIMT_PORTABLE_FIBERS

namespace quire::kernels::emulated {

void Fiber::Prepare(std::byte* stack, size_t bytes, void (*entry)()) {
#ifdef __SANITIZE_ADDRESS__
  stack_ = stack;
  stack_bytes_ = bytes;
  fake_stack_ = nullptr;
#endif
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
}

}  // namespace quire::kernels::emulated

#else

// Saves what a function call must preserve, swaps the stacks, restores.
asm(R"(
.text
.globl quire_simt_switch
.type quire_simt_switch, @function
quire_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size quire_simt_switch, . - quire_simt_switch
)");

namespace quire::kernels::emulated {

void Fiber::Prepare(std::byte* stack, size_t bytes, void (*entry)()) {
#ifdef __SANITIZE_ADDRESS__
  stack_ = stack;
  stack_bytes_ = bytes;
  fake_stack_ = nullptr;
#endif
  // Six saved registers, then the address that `ret` takes; the stack is then as after a call.
  constexpr int kSavedRegisters = 6;
  const uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15};
  auto* frame = reinterpret_cast<uintptr_t*>(top) - 2;
  frame[0] = reinterpret_cast<uintptr_t>(entry);
  frame[1] = 0;
  for (int i = 1; i <= kSavedRegisters; ++i) frame[-i] = 0;
  stack_pointer_ = frame - kSavedRegisters;
}

}  // namespace quire::kernels::emulated

#endif
