#include "infer/sample_arrays.h"

#include <algorithm>

#include "score/batch_reading.h"

namespace hctr {
namespace {

template <class Key>
void add_ones(const BatchView::Table& table, int64_t rows, SampleArrays::Keys& to) {
  const Key* from = table.keys<Key>();
  const size_t before = to.keys.size(), slots = static_cast<size_t>(to.slots), count = static_cast<size_t>(rows);
  to.keys.resize(before + count * slots);
  for (size_t s = 0; s < slots; ++s) {
    const Key* of_slot = from + table.offset(static_cast<int64_t>(s) * table.samples);
    for (size_t b = 0; b < count; ++b) to.keys[before + b * slots + s] = static_cast<int64_t>(of_slot[b]);
  }
  for (size_t k = 1; k <= count * slots; ++k) to.offsets.push_back(static_cast<int64_t>(before + k));
}

void add_keys(const BatchView::Table& table, int64_t rows, SampleArrays::Keys& to) {
  if (table.packed->offsets == PackedKeys::kOnes)
    return table.packed->key_bytes == 4 ? add_ones<uint32_t>(table, rows, to) : add_ones<int64_t>(table, rows, to);
  for (int64_t sample = 0; sample < rows; ++sample)
    for (int64_t s = 0; s < to.slots; ++s) {
      const int64_t bag = s * table.samples + sample, begin = table.offset(bag), end = table.offset(bag + 1);
      for (int64_t k = begin; k < end; ++k) to.keys.push_back(table.key(k));
      to.offsets.push_back(static_cast<int64_t>(to.keys.size()));
      to.one_each = to.one_each && end == begin + 1;
    }
}

}  // namespace

SampleBatches::SampleBatches(const Config& config, const Source& source, int64_t batch)
    : config_(config), layout_(batch_shape(config.data, batch)) {
  std::vector<std::byte*> buffers;
  for (std::vector<std::byte>& buffer : buffers_) {
    buffer.resize(layout_.bytes);
    buffers.push_back(buffer.data());
  }
  ReaderOptions options = reader_options(config, batch);
  options.repeat = false;
  reader_ = std::make_unique<Reader>(config.data, source, layout_, buffers, options, Log::silent());
}

SampleArrays no_samples(const DataSection& section) {
  SampleArrays arrays{.dense_dim = section.dense.dense_dim, .dense_name = section.dense.top};
  for (const SparseInput& input : section.sparse) {
    SampleArrays::Keys keys{.name = input.top, .slots = input.slot_num};
    keys.offsets.push_back(0);
    arrays.inputs.push_back(std::move(keys));
  }
  return arrays;
}

std::optional<std::vector<int64_t>> SampleBatches::next(SampleArrays& arrays, int64_t most) {
  const auto buffer = reader_->next();
  if (!buffer) return std::nullopt;
  const BatchView view(layout_, buffers_[static_cast<size_t>(*buffer)].data());
  const int64_t rows = std::min<int64_t>(view.state->valid_samples, most);
  arrays.dense.insert(arrays.dense.end(), view.dense, view.dense + rows * arrays.dense_dim);
  for (size_t t = 0; t < view.tables.size(); ++t) add_keys(view.tables[t], rows, arrays.inputs[t]);
  arrays.samples += rows;
  reader_->release(*buffer);
  return reader_->take_passed_on().rows_before_bad;
}

SampleArrays read_sample_arrays(const Config& config, const Source& source, int64_t most) {
  SampleBatches batches(config, source, std::min<int64_t>(most, 4096));
  SampleArrays arrays = batches.none();
  while (arrays.samples < most)
    if (!batches.next(arrays, most - arrays.samples)) break;
  return arrays;
}

std::vector<InputView> SampleArrays::views(int64_t first) const {
  std::vector<InputView> views;
  const float* const values = given_dense ? given_dense.get() : dense.data();
  if (dense_dim > 0) views.push_back({.name = dense_name, .data = values + first * dense_dim});
  for (const Keys& input : inputs) {
    InputView& view = views.emplace_back(InputView{.name = input.name, .type = ElementType::i64});
    if (input.given) {
      view.data = input.given.get() + first * input.slots;
      continue;
    }
    const int64_t* offsets = input.offsets.data() + first * input.slots;
    view.data = input.one_each ? input.keys.data() + *offsets : input.keys.data();
    view.offsets = input.one_each ? nullptr : offsets;
  }
  return views;
}

}  // namespace hctr
