// Random permutations that are a pure function of a key and a counter.
#pragma once

#include <utility>
#include <vector>

#include "core/base/random.h"

namespace hctr {

/// Permutes `items` as determined by (key, counter). Fisher-Yates shuffle (R. Fisher and F. Yates, "Statistical
/// Tables", 1938; R. Durstenfeld, CACM 7(7), 1964). The modulo of 64 random bits biases probabilities by less than n /
/// 2^64.
template <class T>
void shuffle(std::vector<T>& items, uint64_t key, uint64_t counter) {
  for (size_t left = items.size(); left > 1; --left) {
    const Random4 draw = philox(key, counter, left);
    const uint64_t bits = uint64_t{draw.v[1]} << 32 | draw.v[0];
    std::swap(items[left - 1], items[bits % left]);
  }
}

/// Permutes the rows of a window into delivery order.
template <class T>
void shuffle_window(std::vector<T>& rows, uint64_t seed, int64_t pass, int64_t window) {
  const uint64_t key = random_key(seed, random_stream("order of samples"));
  shuffle(rows, random_key(key, static_cast<uint64_t>(pass)), static_cast<uint64_t>(window));
}

}  // namespace hctr
