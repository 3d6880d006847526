#include "score/given_samples.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/expect.h"
#include "core/base/step_state.h"
#include "formats/reader/batch_fill.h"

namespace hctr {
namespace {

using Role = ModelTensor::Role;

std::string names_of_samples(const DataSection& section) {
  std::string names;
  for (const ModelTensor& tensor : tensors_of_samples(section))
    names += cat(names.empty() ? "'" : ", '", tensor.name, "'");
  return names;
}

/// The view of an input that there is once. Errors: Error(usage).
const InputView& view_of(const DataSection& section, const SamplesView& given, const std::string& name) {
  const auto is_it = [&](const InputView& view) { return view.name == name; };
  const auto found = std::ranges::find_if(given.inputs, is_it);
  if (found == given.inputs.end())
    throw Error(Kind::usage, cat("no input '", name, "'; samples have ", names_of_samples(section)));
  if (std::ranges::count_if(given.inputs, is_it) > 1)
    throw Error(Kind::usage, cat("input '", name, "' is given twice"));
  if (!found->data && given.samples > 0) throw Error(Kind::usage, cat("input '", name, "' has no data"));
  return *found;
}

}  // namespace

std::vector<ModelTensor> tensors_of_samples(const DataSection& section) {
  std::vector<ModelTensor> tensors = {{Role::labels, section.label.top, {-1, section.labels()}}};
  if (section.sample_weight.given) tensors.push_back({Role::labels, section.sample_weight.top, {-1, 1}});
  if (section.dense.dense_dim > 0) tensors.push_back({Role::dense, section.dense.top, {-1, section.dense.dense_dim}});
  for (const SparseInput& input : section.sparse) {
    tensors.push_back({Role::keys, input.top, {-1, input.slot_num}});
    for (int64_t s = 0; s < input.slot_num; ++s) tensors.back().most_keys.push_back(input.limits().most_of(s));
  }
  return tensors;
}

GivenSamples::GivenSamples(const DataSection& section, const SamplesView& given) : samples_(given.samples) {
  if (samples_ < 0) throw Error(Kind::usage, cat(samples_, " samples"));
  std::set<std::string, std::less<>> known;
  for (const ModelTensor& tensor : tensors_of_samples(section)) known.insert(tensor.name);
  for (const InputView& view : given.inputs)
    if (!known.contains(view.name))
      throw Error(Kind::usage, cat("no input is named '", view.name, "'; samples have ", names_of_samples(section)));
  label_ = floats(section, given, section.label.top);
  if (section.sample_weight.given) weight_ = floats(section, given, section.sample_weight.top);
  if (section.dense.dense_dim > 0) dense_ = floats(section, given, section.dense.top);
  for (const SparseInput& input : section.sparse) keys_.push_back(keys(section, given, input));
  expect_limits(section);
}

GivenSamples::Floats GivenSamples::floats(const DataSection& section, const SamplesView& given,
                                          const std::string& name) const {
  const InputView& view = view_of(section, given, name);
  if (view.type != ElementType::f32) throw Error(Kind::usage, cat("input '", name, "': values must be f32"));
  Floats floats{.data = static_cast<const float*>(view.data)};
  for (const ModelTensor& tensor : tensors_of_samples(section))
    if (tensor.name == name) floats.columns = tensor.shape[1];
  floats.stride = view.stride == 0 ? floats.columns : view.stride;
  return floats;
}

GivenSamples::Keys GivenSamples::keys(const DataSection& section, const SamplesView& given, const SparseInput& input) {
  const InputView& view = view_of(section, given, input.top);
  with_keys(view, [&](const auto* keys) { key_bytes_ = std::max(key_bytes_, static_cast<int>(sizeof *keys)); });
  return {view, input.slot_num, KeyBags(view, input.slot_num)};
}

void GivenSamples::expect_limits(const DataSection& section) const {
  const RecordShape shape = record_shape(section);
  if (std::ranges::all_of(keys_, [](const Keys& keys) { return keys.bags.one_each(); }) && shape.allows_one_hot())
    return;
  std::vector<std::pair<const Keys*, int64_t>> slots;  // slots of a record
  for (const Keys& keys : keys_)
    for (int64_t s = 0; s < keys.slots; ++s) slots.emplace_back(&keys, s);
  for (int64_t b = 0; b < samples_; ++b) {
    const std::string excess = shape.excess([&](int64_t slot) {
      const auto& [keys, s] = slots[static_cast<size_t>(slot)];
      const int64_t count = keys->bags.end(b, s) - keys->bags.begin(b, s);
      if (count < 0)
        throw Error(Kind::usage,
                    cat("input '", keys->view.name, "': the offsets of slot ", s, " of sample ", b, " decrease"));
      return count;
    });
    if (!excess.empty()) throw Error(Kind::data, cat("sample ", b, " of those given: ", excess));
  }
}

void GivenSamples::read(int64_t first, int64_t count, SampleBlock& block, ThreadPool& pool) const {
  block.rows = count;
  const int64_t labels = label_.columns + (weight_.data ? 1 : 0);
  block.label.resize(static_cast<size_t>(count * labels));
  block.dense.resize(static_cast<size_t>(count * dense_.columns));
  for (int64_t r = 0; r < count; ++r) {
    float* const label = block.label.data() + r * labels;
    std::copy_n(label_.data + (first + r) * label_.stride, label_.columns, label);
    if (weight_.data) label[label_.columns] = weight_.data[(first + r) * weight_.stride];
    if (dense_.data)
      std::copy_n(dense_.data + (first + r) * dense_.stride, dense_.columns, block.dense.data() + r * dense_.columns);
  }
  struct Slot {
    const Keys* keys;
    int64_t slot, begin = 0;
    bool fits_32 = true;
  };
  std::vector<Slot> slots;
  for (const Keys& keys : keys_)
    for (int64_t s = 0; s < keys.slots; ++s) slots.push_back({&keys, s});
  const auto each = [&](const auto& body) {
    pool.parallel_for(static_cast<int64_t>(slots.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(slots[static_cast<size_t>(i)], i);
    });
  };
  each([&](Slot& of, int64_t) {
    for (int64_t r = 0; r < count; ++r)
      of.begin += of.keys->bags.end(first + r, of.slot) - of.keys->bags.begin(first + r, of.slot);
  });
  int64_t sum = 0;
  for (Slot& of : slots) sum += std::exchange(of.begin, sum);
  block.keys.resize(static_cast<size_t>(sum));
  block.offsets.resize(slots.size() * static_cast<size_t>(count) + 1);
  block.offsets.back() = static_cast<int32_t>(sum);
  each([&](Slot& of, int64_t index) {
    int64_t to = of.begin, bits = 0;
    with_keys(of.keys->view, [&](const auto* keys) {
      for (int64_t r = 0; r < count; ++r) {
        block.offsets[static_cast<size_t>(index * count + r)] = static_cast<int32_t>(to);
        const int64_t end = of.keys->bags.end(first + r, of.slot);
        for (int64_t k = of.keys->bags.begin(first + r, of.slot); k < end; ++k) {
          bits |= block.keys[static_cast<size_t>(to++)] = static_cast<int64_t>(keys[k]);
        }
      }
    });
    of.fits_32 = (static_cast<uint64_t>(bits) >> 32) == 0;
  });
  block.one_hot = std::ranges::all_of(keys_, [](const Keys& keys) { return keys.bags.one_each(); });
  block.fits_32 = std::ranges::all_of(slots, [](const Slot& of) { return of.fits_32; });
}

GivenBatches::GivenBatches(const BatchLayout& layout, std::vector<std::byte*> buffers, int64_t batch, int rank,
                           int ranks, bool keep_last_partial, ThreadPool& pool)
    : layout_(layout),
      buffers_(std::move(buffers)),
      batch_(batch),
      rank_begin_(batch * rank / ranks),
      rank_end_(batch * (rank + 1) / ranks),
      keep_last_partial_(keep_last_partial),
      pool_(pool) {}

void GivenBatches::give(const GivenSamples& samples, int64_t samples_before) {
  given_ = &samples;
  at_ = 0;
  samples_ = samples_before;
  key_bytes_ = std::max(key_bytes_, samples.key_bytes());
}

std::optional<int> GivenBatches::next() {
  const int64_t rows = given_ ? std::min(batch_, given_->samples() - at_) : 0;
  if (rows <= 0 || (rows < batch_ && !keep_last_partial_)) {
    given_ = nullptr;
    return std::nullopt;
  }
  const int64_t begin = std::min(rank_begin_, rows), own = std::min(rank_end_, rows) - begin;
  given_->read(at_ + begin, own, block_, pool_);
  const RowRange range{&block_, 0, own};
  const size_t buffer = std::exchange(next_, (next_ + 1) % buffers_.size());
  fill_batch(layout_, buffers_[buffer], {&range, 1}, pool_);
  StepState& state = *BatchView(layout_, buffers_[buffer]).state;
  state.first_sample = samples_ + rank_begin_;
  state.valid_samples = static_cast<int32_t>(own);
  state.global_samples = static_cast<int32_t>(rows);
  state.samples = static_cast<int32_t>(layout_.shape.samples);
  state.log_negative_share = 0;
  at_ += rows;
  samples_ += rows;
  return static_cast<int>(buffer);
}

}  // namespace hctr
