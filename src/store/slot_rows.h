// Divides blocks of rows by their slots.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"

namespace hctr {

class SlotRows {
 public:
  using Take = std::function<void(int32_t slot, std::span<const int64_t> keys, const float* rows)>;

  explicit SlotRows(int64_t dim) : dim_(dim) {}
  /// Passes the rows of each slot together, in their order. `slots`: [keys], or empty if all rows are of slot 0. rows:
  /// [keys, dim].
  void divide(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows, ThreadPool&,
              const Take&);

 private:
  int64_t dim_;
  std::vector<size_t> order_;
  std::vector<int64_t> keys_;
  std::vector<float> rows_;
};

}  // namespace hctr
