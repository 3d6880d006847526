// Counter-based random numbers: a value is a pure function of (seed, stream, counter), the same on every
// device, thread and rank. Philox4x32-10: J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/platform.h"

namespace hctr {

/// Four independent 32-bit values.
struct Random4 {
  uint32_t v[4];
};

/// A bijection of 64-bit integers in which every bit affects every other (the finalizer of SplitMix64).
HCTR_HD constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Hashes a name ("dropout1", "table:wide") to a stream number that is the same in every run: FNV-1a, then mix64.
constexpr uint64_t random_stream(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return mix64(h);
}

/// The Philox key for a seed and a stream.
HCTR_HD constexpr uint64_t random_key(uint64_t seed, uint64_t stream) { return mix64(seed ^ mix64(stream)); }

/// Returns four values for the 128-bit counter (hi, lo) under `key`. kRounds: 10 is the paper's default; 7 is the
/// fewest that passes all of the paper's tests.
template <int kRounds = 10>
HCTR_HD inline Random4 philox(uint64_t key, uint64_t hi, uint64_t lo) {
  uint32_t c0 = static_cast<uint32_t>(lo), c1 = static_cast<uint32_t>(lo >> 32);
  uint32_t c2 = static_cast<uint32_t>(hi), c3 = static_cast<uint32_t>(hi >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0;
    const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Value `index` of the sequence (key, hi): element index % 4 of the Philox block index / 4.
HCTR_HD inline uint32_t random_bits(uint64_t key, uint64_t hi, uint64_t index) {
  return philox(key, hi, index >> 2).v[index & 3];
}

/// Writes values first, first + 1, ... of the sequence (key, hi), many times faster than single calls. Host only.
void random_bits(uint64_t key, uint64_t hi, uint64_t first, int64_t count, uint32_t* values, int rounds = 10);

/// A uniform value in [0, 1) with 24 random bits. It is exact in float, so every device returns the same value.
HCTR_HD inline float unit_float(uint32_t bits) { return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f); }

/// A uniform value in [-bound, bound). It is rounded only once, so every device returns the same value.
HCTR_HD inline float symmetric_float(uint32_t bits, float bound) {
  return static_cast<float>(static_cast<int32_t>(bits >> 8) - 8388608) * (bound * (1.0f / 8388608.0f));
}

/// Standard normal value from two 32-bit values (Box and Muller 1958). Host only: the last bit of transcendental
/// functions differs between devices.
double standard_normal(uint32_t a, uint32_t b);

}  // namespace hctr
