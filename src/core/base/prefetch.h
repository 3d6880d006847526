// Asks the processor for memory that is read soon.
#pragma once

#include <cstddef>

namespace hctr {

/// Starts loading the cache lines of `bytes` bytes from here on into the caches; any address is fine. It is always
/// inlined: GCC takes a function whose only effect is a prefetch for one without any effect, and leaves out its calls.
/// For the same reason functions that call this are lambdas or always inlined, too.
[[gnu::always_inline]] inline void prefetch(const void* from, size_t bytes = 1) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const std::byte*>(from) + at);
}

}  // namespace hctr
