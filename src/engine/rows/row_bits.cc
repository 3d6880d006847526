#include "engine/rows/row_bits.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hctr {

int RowBits::now() const {
  constexpr int kOfAPass = 8;  // of the sort
  const int most = std::bit_width(static_cast<uint64_t>(most_rows_));
  if (!follows_) return most;
  const int in_use = std::bit_width(static_cast<uint64_t>(arrays_.capacity()));
  return std::min(most, (in_use + kOfAPass - 1) / kOfAPass * kOfAPass);
}

void RowBits::follow_memory() {
  if (on_disk_) return;  // memory grows when the work of the step is recorded already
  follows_ = true;
  recorded_ = now();
}

bool RowBits::consume_change() {
  const int bits = now();
  return follows_ && std::exchange(recorded_, bits) != bits;
}

}  // namespace hctr
