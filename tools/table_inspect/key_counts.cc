#include "key_counts.h"

#include "core/base/progress.h"
#include "core/base/thread_pool.h"
#include "core/device/buffer.h"
#include "formats/reader/reader.h"
#include "program/progress_line_view.h"

namespace hctr {

int64_t KeyCounts::of(uint64_t slot, int64_t key) const {
  const auto keys = of_slot.find(slot);
  if (keys == of_slot.end()) return 0;
  const auto found = keys->second.find(key);
  return found == keys->second.end() ? 0 : found->second;
}

KeyCounts count_keys(const Config& config, size_t input, bool by_slot, int64_t samples, const Log& log) {
  constexpr int64_t kBatch = 4096;
  const BatchLayout layout(batch_shape(config.data, kBatch));
  std::vector<Buffer> memory;
  std::vector<std::byte*> slots;
  for (int i = 0; i < 2; ++i) slots.push_back(memory.emplace_back(Device{}, layout.bytes).data());
  Reader reader(config.data, training_source(config.data), layout, slots,
                {.batch = kBatch, .workers = std::max(1, usable_cores() - 1), .repeat = false}, log);
  Progress progress(show_progress_line, "counting keys", "samples", std::min(samples, reader.samples()));
  KeyCounts counts;
  while (counts.samples < samples) {
    const auto slot = reader.next();
    if (!slot) break;
    const BatchView batch(layout, slots[static_cast<size_t>(*slot)]);
    const BatchView::Table& table = batch.tables[input];
    for (int64_t s = 0; s < layout.shape.tables[input].slots; ++s) {
      auto& keys = counts.of_slot[by_slot ? static_cast<uint64_t>(s) : 0];
      for (int32_t p = table.offset(s * kBatch); p < table.offset((s + 1) * kBatch); ++p) ++keys[table.key(p)];
    }
    counts.samples += batch.state->valid_samples;
    reader.release(*slot);
    progress.update(counts.samples);
  }
  progress.finish();
  return counts;
}

}  // namespace hctr
