#include "kernels/simt/context.h"

#if defined(__x86_64__)
asm(R"(
  .text
  .globl numgate_simt_jump
  .type numgate_simt_jump, @function
numgate_simt_jump:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, %rax
  mov %rdi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  mov %rsi, %rdx
  mov %rax, %rdi
  ret
  .size numgate_simt_jump, .-numgate_simt_jump
)");
#endif
