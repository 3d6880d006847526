// Prefetches memory into the CPU caches.
#pragma once

#include <cstddef>

namespace hctr {

/// Starts loading the cache lines of `bytes` bytes at `from` into the caches. Any address is valid. prefetch() is
/// always inlined, because GCC removes calls of a function that only prefetches, as it sees no effect in such calls.
/// For the same reason, functions that only call prefetch() are lambdas or are always inlined.
[[gnu::always_inline]] inline void prefetch(const void* from, size_t bytes = 1) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const std::byte*>(from) + at);
}

}  // namespace hctr
