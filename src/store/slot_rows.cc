#include "store/slot_rows.h"

#include <algorithm>
#include <numeric>

namespace hctr {

void SlotRows::divide(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows,
                      ThreadPool& threads, const Take& take) {
  constexpr int64_t kRowsOfTask = 256;
  if (keys.empty()) return;
  if (slots.empty()) return take(0, keys, rows.data());
  const auto pass_runs = [&](const auto& slot_at, std::span<const int64_t> of, const float* values) {
    for (size_t begin = 0, end = 0; begin < of.size(); begin = end) {
      const int32_t slot = slot_at(begin);
      for (end = begin + 1; end < of.size() && slot_at(end) == slot;) ++end;
      take(slot, of.subspan(begin, end - begin), values + static_cast<int64_t>(begin) * dim_);
    }
  };
  if (std::ranges::is_sorted(slots)) return pass_runs([&](size_t i) { return slots[i]; }, keys, rows.data());
  order_.resize(keys.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::stable_sort(order_, {}, [&](size_t i) { return slots[i]; });
  keys_.resize(keys.size());
  rows_.resize(rows.size());
  threads.parallel_for(std::ssize(keys), kRowsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t from = order_[static_cast<size_t>(i)];
      keys_[static_cast<size_t>(i)] = keys[from];
      std::copy_n(rows.data() + static_cast<int64_t>(from) * dim_, dim_, rows_.data() + i * dim_);
    }
  });
  pass_runs([&](size_t i) { return slots[order_[i]]; }, keys_, rows_.data());
}

}  // namespace hctr
