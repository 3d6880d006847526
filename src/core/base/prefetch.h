// Prefetches memory that is read soon.
#pragma once

#include <cstddef>

namespace hctr {

/// Starts loading the cache lines of `bytes` bytes from here on into the caches; any address is fine. It is always
/// inlined: GCC considers a function whose only effect is a prefetch to have none, and removes its calls. For the same
/// reason functions that call this are lambdas or always inlined, too.
[[gnu::always_inline]] inline void prefetch(const void* from, size_t bytes = 1) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const std::byte*>(from) + at);
}

}  // namespace hctr
