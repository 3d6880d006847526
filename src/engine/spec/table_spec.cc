#include "engine/spec/table_spec.h"

#include <algorithm>

#include "ops/embedding/hash_index.h"

namespace hctr {

RowMemory& budget_of(Runtime& runtime, const TableSpec& spec) {
  return spec.memory ? *spec.memory : runtime.row_memory();
}

int64_t number_bytes_of_row(const TableSpec& spec) {
  const auto size = [](DType dtype) { return static_cast<int64_t>(size_of(dtype)); };
  return spec.dim * size(spec.storage) + spec.optimizer.states() * spec.state_dim() * size(spec.stored_states());
}

int64_t bytes_of_row(const TableSpec& spec) {
  const int64_t numbers = number_bytes_of_row(spec);
  constexpr int64_t kKey = 8 + 4, kMarks = 4 + 1 + 1, kEntries = 2 * sizeof(ops::IndexEntry);
  const int64_t stats_bytes = 4 * (spec.policy.tracks_last_step() + spec.policy.counts_occurrences());
  return numbers + kMarks + stats_bytes + (spec.direct.empty() ? kKey + kEntries : 0);
}

int64_t rows_with_memory(int64_t rows, int64_t hint, int64_t batch_keys, int64_t most_queued) {
  int64_t capacity = std::max<int64_t>({hint, most_queued * batch_keys, 2});
  while (rows > hint && capacity < rows + std::min<int64_t>(2, most_queued) * batch_keys)
    capacity = capacity + capacity / 2;
  return capacity;
}

}  // namespace hctr
