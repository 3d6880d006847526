// Prefetches memory into the CPU caches.
#pragma once

#include <cstddef>

namespace hctr {

/// Starts loading the cache lines of `bytes` bytes at `from` into the caches. Any address is valid. GCC treats a
/// non-inlined function that only prefetches as having no effect and removes its calls, so prefetch() is always
/// inlined. For the same reason callers of prefetch() are lambdas or are always inlined.
[[gnu::always_inline]] inline void prefetch(const void* from, size_t bytes = 1) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const std::byte*>(from) + at);
}

}  // namespace hctr
