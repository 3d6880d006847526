#include "engine/rows/row_bits.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hctr {

int RowBits::now() const { return follows_ ? of_memory() : std::bit_width(static_cast<uint64_t>(most_rows_)); }

int RowBits::of_memory() const {
  constexpr int kOfAPass = 8;  // bits per pass of the radix sort
  const int most = std::bit_width(static_cast<uint64_t>(most_rows_));
  if (on_disk_) return most;  // with a disk, memory may grow after the work is queued
  const int in_use = std::bit_width(static_cast<uint64_t>(arrays_.capacity()));
  return std::min(most, (in_use + kOfAPass - 1) / kOfAPass * kOfAPass);
}

void RowBits::follow_memory() {
  if (on_disk_) return;  // with a disk, memory grows after the step has been recorded, so the number of bits is fixed
  follows_ = true;
  recorded_ = now();
}

bool RowBits::consume_change() {
  const int bits = now();
  return follows_ && std::exchange(recorded_, bits) != bits;
}

}  // namespace hctr
