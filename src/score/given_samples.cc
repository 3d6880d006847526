#include "score/given_samples.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/expect.h"
#include "core/base/step_state.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
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

}  // namespace

const InputView& GivenSamples::view_of(const DataSection& section, const SamplesView& given, const std::string& name) {
  const auto is_it = [&](const InputView& view) { return view.name == name; };
  const auto found = std::ranges::find_if(given.inputs, is_it);
  if (found == given.inputs.end())
    throw Error(Kind::usage, cat("no input '", name, "'; samples have ", names_of_samples(section)));
  if (std::ranges::count_if(given.inputs, is_it) > 1)
    throw Error(Kind::usage, cat("input '", name, "' is given twice"));
  if (!found->data && given.samples > 0) throw Error(Kind::usage, cat("input '", name, "' has no data"));
  if (found->gpu < 0) return *found;
  if (!gpu_ || *gpu_ != found->gpu)
    throw Error(Kind::usage, cat("input '", name, "' is on GPU ", found->gpu, ", but the trainer is ",
                                 gpu_ ? cat("on GPU ", *gpu_, ": pass memory of that GPU or host memory")
                                      : std::string("on the CPU or on several ranks: pass host memory")));
  if (found->offsets)
    throw Error(Kind::usage, cat("input '", name, "' has bags of keys on a GPU: pass keys and offsets in host memory"));
  if (std::ranges::none_of(callers_, [&](const auto& caller) { return caller.first == found->stream; }))
    callers_.emplace_back(found->stream, CallerStream(Device{DeviceKind::cuda, found->gpu}, found->stream));
  return *found;
}

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

GivenSamples::GivenSamples(const DataSection& section, const SamplesView& given, std::optional<int> gpu)
    : gpu_(gpu), samples_(given.samples) {
  const CurrentDevice current(gpu ? Device{DeviceKind::cuda, *gpu} : Device{});
  if (samples_ < 0) throw Error(Kind::usage, cat(samples_, " samples"));
  std::set<std::string, std::less<>> known;
  for (const ModelTensor& tensor : tensors_of_samples(section)) known.insert(tensor.name);
  for (const InputView& view : given.inputs)
    if (!known.contains(view.name))
      throw Error(Kind::usage, cat("no input is named '", view.name, "'; samples have ", names_of_samples(section)));
  label_ = on_host(floats(section, given, section.label.top));
  if (section.sample_weight.given) weight_ = on_host(floats(section, given, section.sample_weight.top));
  if (section.dense.dense_dim > 0) dense_ = floats(section, given, section.dense.top);
  on_gpu_ = dense_.on_gpu;
  for (const SparseInput& input : section.sparse) keys_.push_back(keys(section, given, input));
  expect_one_place(section);
  expect_limits(section);
}

void GivenSamples::expect_one_place(const DataSection& section) const {
  const auto parts =
      static_cast<size_t>(std::ranges::count_if(keys_, [](const Keys& of) { return of.view.gpu >= 0; })) +
      (dense_.on_gpu ? 1 : 0);
  if (on_gpu_ && parts < keys_.size() + (section.dense.dense_dim > 0 ? 1 : 0))
    throw Error(Kind::usage,
                "dense values and keys are partly on a GPU and partly on the host: pass all in one of the two "
                "memories");
}

GivenSamples::Floats GivenSamples::on_host(Floats from) {
  if (!from.on_gpu) return from;
  // Copies on this stream run after the caller's queued work.
  const StreamRef stream{{DeviceKind::cuda, *gpu_}, from.stream};
  std::vector<float>& to = copies_.emplace_back(static_cast<size_t>(samples_ * from.columns));
  const size_t row = static_cast<size_t>(from.columns) * sizeof(float);
  copy_rows(stream, {reinterpret_cast<std::byte*>(to.data()), row},
            {reinterpret_cast<const std::byte*>(from.data), static_cast<size_t>(from.stride) * sizeof(float)}, samples_,
            row);
  stream.synchronize();
  return {.data = to.data(), .columns = from.columns, .stride = from.columns};
}

GivenSamples::Floats GivenSamples::floats(const DataSection& section, const SamplesView& given,
                                          const std::string& name) {
  const InputView& view = view_of(section, given, name);
  if (view.type != ElementType::f32) throw Error(Kind::usage, cat("input '", name, "': values must be f32"));
  Floats floats{.data = static_cast<const float*>(view.data), .on_gpu = view.gpu >= 0, .stream = view.stream};
  for (const ModelTensor& tensor : tensors_of_samples(section))
    if (tensor.name == name) floats.columns = tensor.shape[1];
  floats.stride = view.stride == 0 ? floats.columns : view.stride;
  return floats;
}

GivenSamples::Keys GivenSamples::keys(const DataSection& section, const SamplesView& given, const SparseInput& input) {
  const InputView& view = view_of(section, given, input.top);
  on_gpu_ = on_gpu_ || view.gpu >= 0;
  key_bytes_ = std::max(key_bytes_, static_cast<int>(key_width(view)));
  return {view, input.slot_num, KeyBags(view, input.slot_num)};
}

void GivenSamples::expect_limits(const DataSection& section) const {
  const RecordShape shape = record_shape(section);
  if (std::ranges::all_of(keys_, [](const Keys& keys) { return keys.bags.one_each(); }) && shape.allows_one_hot())
    return;
  std::vector<std::pair<const Keys*, int64_t>> slots;  // all slots of a record
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

void GivenSamples::place(int64_t first, int64_t count, const BatchView& batch) const {
  const int64_t labels = label_.columns + (weight_.data ? 1 : 0);
  for (int64_t r = 0; r < count; ++r) {
    float* const label = batch.label + r * labels;
    std::copy_n(label_.data + (first + r) * label_.stride, label_.columns, label);
    if (weight_.data) label[label_.columns] = weight_.data[(first + r) * weight_.stride];
  }
  std::fill(batch.label + count * labels, batch.label + batch.layout->shape.samples * labels, 0.0f);
  std::vector<KeyForm> forms;
  for (const Keys& keys : keys_) forms.push_back(form_of_ones(keys.view, count, keys.slots));
  batch.place(forms);
}

void GivenSamples::copy(int64_t first, int64_t count, StreamRef stream, const BatchRing& ring, int buffer) const {
  for (const auto& [handle, caller] : callers_) caller.make_wait(stream);
  std::byte* const to = ring.device_block(buffer);
  if (dense_.data) {
    const size_t row = static_cast<size_t>(dense_.columns) * sizeof(float);
    std::byte* const dense = to + ring.layout().dense;
    copy_rows(stream, {dense, row},
              {reinterpret_cast<const std::byte*>(dense_.data + first * dense_.stride),
               static_cast<size_t>(dense_.stride) * sizeof(float)},
              count, row);
    zero_bytes(stream, dense + static_cast<size_t>(count) * row, static_cast<size_t>(ring.samples() - count) * row);
  }
  const BatchView batch = ring.on_host(buffer);
  for (size_t t = 0; t < keys_.size(); ++t) {
    const Keys& keys = keys_[t];
    const size_t width = key_width(keys.view), row = static_cast<size_t>(keys.slots) * width;
    const size_t stride = keys.view.stride == 0 ? row : static_cast<size_t>(keys.view.stride) * width;
    copy_rows(stream, {to + batch.packed[t].keys, row},
              {static_cast<const std::byte*>(keys.view.data) + static_cast<size_t>(first) * stride, stride}, count,
              row);
  }
}

GivenBatches::GivenBatches(const BatchLayout& layout, std::vector<std::byte*> buffers, const RankOfBatch& part,
                           bool keep_last_partial, ThreadPool& pool)
    : layout_(layout),
      buffers_(std::move(buffers)),
      batch_(part.batch),
      rank_begin_(part.batch * part.rank / part.ranks),
      rank_end_(part.batch * (part.rank + 1) / part.ranks),
      keep_last_partial_(keep_last_partial),
      pool_(pool),
      placed_(buffers_.size()) {}

void GivenBatches::give(const GivenSamples& samples, int64_t samples_before) {
  given_ = &samples;
  at_ = 0;
  samples_ = samples_before;
  reads_later_ = samples.on_gpu();
  key_bytes_ = std::max(key_bytes_, samples.key_bytes());
}

std::optional<int> GivenBatches::next() {
  const int64_t rows = given_ ? std::min(batch_, given_->samples() - at_) : 0;
  if (rows <= 0 || (rows < batch_ && !keep_last_partial_)) {
    given_ = nullptr;
    return std::nullopt;
  }
  const int64_t begin = std::min(rank_begin_, rows), own = std::min(rank_end_, rows) - begin;
  const size_t buffer = std::exchange(next_, (next_ + 1) % buffers_.size());
  placed_[buffer] = given_->on_gpu() ? Placed{given_, at_ + begin, own} : Placed{};
  if (given_->on_gpu()) {
    given_->place(at_ + begin, own, BatchView(layout_, buffers_[buffer]));
  } else {
    given_->read(at_ + begin, own, block_, pool_);
    const RowRange range{&block_, 0, own};
    fill_batch(layout_, buffers_[buffer], {&range, 1}, pool_);
  }
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

void GivenBatches::upload(StreamRef stream, const BatchRing& ring, int buffer) const {
  const Placed& placed = placed_[static_cast<size_t>(buffer)];
  if (!placed.samples) return ring.upload(stream, buffer);
  ring.upload(stream, buffer, 0, layout_.dense);
  placed.samples->copy(placed.first, placed.count, stream, ring, buffer);
}

}  // namespace hctr
