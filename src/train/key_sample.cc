#include "train/key_sample.h"

#include <algorithm>

#include "core/device/buffer.h"
#include "score/batch_reading.h"

namespace hctr {

std::vector<std::vector<SlotKeys>> sample_keys(const Config& config, int64_t most_samples) {
  if (config.data.source.empty()) return {};
  if (config.data.follow && config.data.first_files.empty())
    throw Error(Kind::data, cat("'", config.data.source,
                                "' contains no file, but keys must be sampled for the placement of rows; add a "
                                "file, or resume with the number of ranks of the checkpoint"));
  const int64_t samples = std::min(config.solver.batchsize, most_samples);
  const BatchLayout layout(batch_shape(config.data, samples));
  const HostBuffer memory(Device{}, layout.bytes);
  ReaderOptions options = reader_options(config, samples);
  options.workers = 1;
  Reader reader(config.data, training_source(config.data), layout, {memory.data()}, options, Log::silent());
  reader.next();
  const BatchView batch(layout, memory.data());
  const auto valid = std::max<int64_t>(batch.state->valid_samples, 1);
  const double batches = static_cast<double>(config.solver.batchsize) / static_cast<double>(valid);
  std::vector<std::vector<SlotKeys>> inputs;
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    auto& slots = inputs.emplace_back();
    for (int64_t s = 0; s < layout.shape.tables[t].slots; ++s) {
      const BatchView::Table& table = batch.tables[t];
      std::vector<int64_t> keys = table.keys_of(table.offset(s * samples), table.offset((s + 1) * samples));
      const auto count = static_cast<double>(keys.size());
      std::sort(keys.begin(), keys.end());
      const auto seen = std::unique(keys.begin(), keys.end()) - keys.begin();
      // `seen` * `batches` is an upper bound: the number of distinct keys grows at most in proportion to the batch.
      slots.push_back({count / static_cast<double>(valid), static_cast<double>(seen) * std::max(batches, 1.0)});
    }
  }
  return inputs;
}

}  // namespace hctr
