// Finds the most frequent rows of a table by counted occurrences.
#include <algorithm>
#include <tuple>

#include "core/device/copy_bytes.h"
#include "engine/table/table.h"

namespace hctr {

bool EmbeddingTable::FrequentRow::operator<(const FrequentRow& other) const {
  return std::tuple(-int64_t{occurrences}, slot, key) < std::tuple(-int64_t{other.occurrences}, other.slot, other.key);
}

std::vector<EmbeddingTable::FrequentRow> EmbeddingTable::most_frequent(int64_t most) {
  constexpr int64_t kBlock = int64_t{1} << 20;  // rows per block
  const int64_t rows = store_.tiers().close_up();
  const StreamRef stream = runtime_.compute_stream();
  HCTR_EXPECT(arrays().access_stats().occurrences, "table '", spec_.name, "' counts no occurrences");
  const auto part = [&]<class T>(const T* column, int64_t first, int64_t count) {
    std::vector<T> out(column ? static_cast<size_t>(count) : 0);
    if (column) copy_bytes(stream, out.data(), column + first, out.size() * sizeof(T));
    stream.synchronize();
    return out;
  };
  const ops::HashIndex& index = hash_index();
  std::vector<FrequentRow> best;
  const auto keep_best = [&] {
    if (static_cast<int64_t>(best.size()) <= most) return;
    std::nth_element(best.begin(), best.begin() + most, best.end());
    best.resize(static_cast<size_t>(most));
  };
  for (int64_t first = 1; first <= rows; first += kBlock) {
    const int64_t count = std::min(kBlock, rows + 1 - first);
    const auto occurrences = part(arrays().access_stats().occurrences, first, count);
    const auto keys = part(index.row_keys, first, count);
    const auto slots = part(index.row_slots, first, count);
    const auto numbers = part(arrays().numbers(), first, count);
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (occurrences[at] == 0) continue;
      const int64_t row = numbers.empty() ? first + i : numbers[at];
      const ops::RowOwner owner = store_.rows().direct() ? spec_.direct.index().owner(row)
                                                         : ops::RowOwner{keys[at], slots.empty() ? 0 : slots[at]};
      best.push_back({occurrences[at], owner.slot, owner.key, row});
    }
    keep_best();
  }
  if (const DiskRows* const disk = disk_rows()) {
    for (const DiskRows::Row& row : disk->sorted_rows())
      if (row.occurrences != 0) best.push_back({row.occurrences, row.slot, row.key, 0});
    keep_best();
  }
  std::sort(best.begin(), best.end());
  return best;
}

void EmbeddingTable::export_rows(std::span<const FrequentRow> rows, const std::function<void(const RowBlock&)>& sink) {
  store_.tiers().finished_rows();  // waits for queued work
  const RowAt at = [&](int64_t i) -> std::pair<ops::RowOwner, int32_t> {
    const FrequentRow& row = rows[static_cast<size_t>(i)];
    return {{row.key, row.slot}, static_cast<int32_t>(row.row)};
  };
  emit_rows(static_cast<int64_t>(rows.size()), at, true, sink);
}

}  // namespace hctr
