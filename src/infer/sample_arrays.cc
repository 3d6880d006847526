#include "infer/sample_arrays.h"

#include <algorithm>

#include "formats/reader/reader.h"
#include "score/batch_reading.h"

namespace hctr {
namespace {

void add_keys(const BatchView::Table& table, int64_t capacity, int64_t sample, SampleArrays::Keys& to) {
  for (int64_t s = 0; s < to.slots; ++s) {
    const int64_t bag = s * capacity + sample, begin = table.offset(bag), end = table.offset(bag + 1);
    for (int64_t k = begin; k < end; ++k) to.keys.push_back(table.key(k));
    to.offsets.push_back(static_cast<int64_t>(to.keys.size()));
    to.one_each = to.one_each && end == begin + 1;
  }
}

}  // namespace

SampleArrays read_sample_arrays(const Config& config, const Source& source, int64_t most) {
  const int64_t batch = std::min<int64_t>(most, 4096);
  const BatchLayout layout(batch_shape(config.data, batch));
  std::vector<std::byte> one(layout.bytes), other(layout.bytes);
  ReaderOptions options = reader_options(config, batch);
  options.repeat = false;
  Reader reader(config.data, source, layout, {one.data(), other.data()}, options, Log::silent());
  SampleArrays arrays{.dense_dim = config.data.dense.dense_dim, .dense_name = config.data.dense.top};
  for (const SparseInput& input : config.data.sparse) {
    SampleArrays::Keys keys{.name = input.top, .slots = input.slot_num};
    keys.offsets.push_back(0);
    arrays.inputs.push_back(std::move(keys));
  }
  while (arrays.samples < most) {
    const auto buffer = reader.next();
    if (!buffer) break;
    const BatchView view(layout, (*buffer == 0 ? one : other).data());
    const int64_t rows = std::min<int64_t>(view.state->valid_samples, most - arrays.samples);
    arrays.dense.insert(arrays.dense.end(), view.dense, view.dense + rows * arrays.dense_dim);
    for (size_t t = 0; t < view.tables.size(); ++t)
      for (int64_t b = 0; b < rows; ++b) add_keys(view.tables[t], batch, b, arrays.inputs[t]);
    arrays.samples += rows;
    reader.release(*buffer);
  }
  return arrays;
}

std::vector<InputView> SampleArrays::views(int64_t first) const {
  std::vector<InputView> views;
  if (dense_dim > 0) views.push_back({.name = dense_name, .data = dense.data() + first * dense_dim});
  for (const Keys& input : inputs) {
    const int64_t* offsets = input.offsets.data() + first * input.slots;
    views.push_back({.name = input.name,
                     .data = input.one_each ? input.keys.data() + *offsets : input.keys.data(),
                     .type = ElementType::i64,
                     .offsets = input.one_each ? nullptr : offsets});
  }
  return views;
}

}  // namespace hctr
