// Switching stacks. Boost's jump_fcontext leaves by an indirect jump, after which the processor
// mispredicts every return; on x86-64 ours leaves by a return, at half the cost of a switch.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <boost/context/detail/fcontext.hpp>
#endif

namespace numgate::simt {
inline namespace cpu {

#if defined(__x86_64__)

struct Transfer {
  void* fctx;  // the context that was left
  void* data;
};

extern "C" Transfer numgate_simt_jump(void* to, void* data);

inline Transfer jump(void* to, void* data) { return numgate_simt_jump(to, data); }

// A context that calls `entry` on the stack below `top`.
inline void* make_context(void* top, std::size_t /*size*/, void (*entry)(Transfer)) {
  auto* words =
      reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15});
  *--words = nullptr;  // where entry would return to
  *--words = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--words = nullptr;  // the saved registers
  return words;
}

#else

using Transfer = boost::context::detail::transfer_t;
inline Transfer jump(void* to, void* data) {
  return boost::context::detail::jump_fcontext(to, data);
}
inline void* make_context(void* top, std::size_t size, void (*entry)(Transfer)) {
  return boost::context::detail::make_fcontext(top, size, entry);
}

#endif

}  // namespace cpu
}  // namespace numgate::simt
