#include "infer/score_session.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "core/device/copy_bytes.h"
#include "net/graph/memory_plan.h"
#include "ops/embedding/bag_lengths.h"
#include "score/batch_reading.h"
#include "score/key_views.h"

namespace hctr {
namespace {

// A thread of the pool takes at least as much.
constexpr int64_t kKeysOfTask = int64_t{1} << 14, kBytesOfTask = int64_t{1} << 18;
// A smaller batch goes to the device in one copy, a larger one in parts.
constexpr size_t kBytesAtOnce = size_t{1} << 18;
constexpr int64_t kBytesOfPart = int64_t{1} << 22;
int64_t slots_of_task(int64_t samples) { return std::max<int64_t>(1, kKeysOfTask / std::max<int64_t>(1, samples)); }

/// Bytes from the first element to the last.
size_t bytes_to_copy(const TensorSpec& spec) {
  return spec.rows() == 0
             ? 0
             : static_cast<size_t>((spec.rows() - 1) * spec.row_stride + spec.row_elements()) * size_of(spec.dtype);
}

/// Those of the model, but for memory of rows, of which a session has none.
RuntimeOptions without_rows(RuntimeOptions options) {
  options.row_memory = {};
  return options;
}

}  // namespace

std::vector<ModelTensor> model_inputs(const Config& config) {
  std::vector<ModelTensor> inputs;
  if (config.data.dense.dense_dim > 0)
    inputs.push_back({ModelTensor::Role::dense, config.data.dense.top, {-1, config.data.dense.dense_dim}});
  for (const SparseInput& input : config.data.sparse) {
    inputs.push_back({ModelTensor::Role::keys, input.top, {-1, input.slot_num}});
    for (int64_t s = 0; s < input.slot_num; ++s) inputs.back().most_keys.push_back(input.kept_nnz(s));
  }
  return inputs;
}

std::vector<ModelTensor> model_outputs(const Replica& replica) {
  std::vector<ModelTensor> outputs;
  const std::vector<Tensor> predictions = replica.predictions(Phase::evaluate);
  const std::vector<std::string> names = replica.tasks();
  for (size_t i = 0; i < predictions.size(); ++i)
    outputs.push_back({ModelTensor::Role::scores, names[i], {-1, predictions[i].row_elements()}});
  return outputs;
}

ScoreSession::ScoreSession(LoadedModel& model, int64_t samples, bool copies_written)
    : config_(model.config()),
      runtime_(model.device(), without_rows(model.runtime().options())),
      graph_(wired_graph(config_, samples, Phase::evaluate)),
      network_(graph_, Phase::evaluate, model.replica().weights(), model.replica().layer_state(), runtime_,
               model.comm()),
      ring_(batch_layout(config_, samples, runtime_.device()), 1, runtime_.device()),
      batch_(batch_tensors(ring_, 0, config_.data.sparse.size())),
      binding_(network_.bind(batch_.label, batch_.dense)) {
  const BatchShape& shape = ring_.shape();
  Replica& replica = model.replica();
  for (size_t e = 0; e < replica.embeddings(); ++e) {
    const BatchShape::Table& table = shape.tables[graph_.embedding_inputs[e]];
    readers_.push_back(replica.embedding(e).reader(runtime_, samples, table.key_capacity));
  }
  size_t bytes = 0;
  for (const Tensor& prediction : network_.predictions()) {
    results_.push_back({prediction.spec(), bytes});
    bytes += (prediction.spec().bytes() + 255) / 256 * 256;
  }
  host_results_.emplace(runtime_.device(), bytes);
  const BatchView batch = ring_.on_host(0);
  std::fill_n(batch.label, shape.samples * shape.label_dim, 0.0f);  // predictions do not depend on it
  ring_.upload(runtime_.compute_stream(), 0, ring_.layout().label, ring_.layout().dense);
  if (!copies_written) {
    Context ctx(runtime_, runtime_.compute_stream());
    network_.write_weight_copies(ctx, binding_);
    runtime_.compute_stream().synchronize();
  }
  binding_.weights_are_fixed = true;
  program_ = std::make_unique<Program>(runtime_.compute_stream(), config_.solver.cuda_graph, [this] { compute(); });
}

std::vector<int64_t> ScoreSession::count_keys(const ScoreRequest& request, size_t input) {
  const InputView& view = *request.keys[input];
  const BatchShape::Table& shape = ring_.shape().tables[input];
  const SparseInput& section = config_.data.sparse[input];
  const KeyBags bags(view, shape.slots);
  if (bags.one_each()) return std::vector<int64_t>(static_cast<size_t>(shape.slots), request.count);
  std::vector<int64_t> counts(static_cast<size_t>(shape.slots));
  runtime_.threads().parallel_for(shape.slots, slots_of_task(request.count), [&](int64_t from, int64_t to) {
    for (int64_t s = from; s < to; ++s)
      for (int64_t b = request.first; b < request.first + request.count; ++b) {
        const int64_t given = bags.end(b, s) - bags.begin(b, s);
        const int64_t keys = shape.keep > 0 ? std::min(given, shape.keep) : given;
        if (given < 0)
          throw Error(Kind::usage,
                      cat("input '", view.name, "': the offsets of slot ", s, " of sample ", b, " decrease"));
        if (keys > section.kept_nnz(s))
          throw Error(Kind::usage, cat("input '", view.name, "': slot ", s, " of sample ", b, " has ", keys,
                                       " keys, and the model takes up to ", section.kept_nnz(s)));
        counts[static_cast<size_t>(s)] += keys;
      }
  });
  return counts;
}

bool ScoreSession::fits_32(const ScoreRequest& request, size_t input) {
  const InputView& view = *request.keys[input];
  const int64_t slots = ring_.shape().tables[input].slots;
  const KeyBags bags(view, slots);
  const int64_t begin = bags.begin(request.first, 0), end = bags.end(request.first + request.count - 1, slots - 1);
  std::atomic<bool> fits = true;
  with_keys(view, [&](const auto* keys) {
    if (end > begin)
      runtime_.threads().parallel_for(end - begin, kKeysOfTask, [&](int64_t from, int64_t to) {
        uint64_t bits = 0;
        for (int64_t k = begin + from; k < begin + to; ++k)
          bits |= static_cast<uint64_t>(static_cast<int64_t>(keys[k]));
        if (bits >> 32 != 0) fits.store(false, std::memory_order_relaxed);
      });
  });
  return fits;
}

KeyForm ScoreSession::form_of(const ScoreRequest& request, size_t input, const std::vector<int64_t>& counts) {
  const InputView& view = *request.keys[input];
  KeyForm form{.count = std::accumulate(counts.begin(), counts.end(), int64_t{0}),
               .ones = KeyBags(view, ring_.shape().tables[input].slots).one_each(),
               .rows = request.count};
  // One key each is taken as it is; bags are written anew, in the order of slots.
  form.by_sample = form.ones;
  form.fits_32 = form.ones ? view.type == ElementType::u32 : fits_32(request, input);
  form.sign_extends = form.ones && view.type == ElementType::i32;
  return form;
}

void ScoreSession::fill_bags(const ScoreRequest& request, size_t input, const std::vector<int64_t>& counts) {
  const BatchView::Table table = ring_.on_host(0).tables[input];
  with_keys(*request.keys[input], [&](const auto* keys) {
    table.packed->key_bytes == 4 ? fill_bags(request, input, counts, keys, table.keys<uint32_t>())
                                 : fill_bags(request, input, counts, keys, table.keys<int64_t>());
  });
}

template <class From, class To>
void ScoreSession::fill_bags(const ScoreRequest& request, size_t input, const std::vector<int64_t>& counts,
                             const From* from, To* to) {
  const BatchShape::Table& shape = ring_.shape().tables[input];
  const BatchView::Table table = ring_.on_host(0).tables[input];
  const KeyBags bags(*request.keys[input], shape.slots);
  std::vector<int64_t> begins(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), begins.begin() + 1);
  runtime_.threads().parallel_for(shape.slots, slots_of_task(request.count), [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      auto at = static_cast<int32_t>(begins[static_cast<size_t>(s)]);
      int32_t* offsets = table.offsets() + s * ring_.samples();
      for (int64_t b = 0; b < request.count; ++b) {
        int64_t begin = bags.begin(request.first + b, s), end = bags.end(request.first + b, s);
        if (shape.keep > 0 && end - begin > shape.keep)
          shape.keep_last ? begin = end - shape.keep : end = begin + shape.keep;
        offsets[b] = at;
        for (int64_t k = begin; k < end; ++k) to[at++] = static_cast<To>(static_cast<int64_t>(from[k]));
      }
      std::fill(offsets + request.count, offsets + ring_.samples(), at);
    }
  });
  table.offsets()[shape.slots * ring_.samples()] = static_cast<int32_t>(begins.back());
}

void ScoreSession::bring_rows(const RowsOfCaller& from, size_t at) {
  std::byte* const staged = ring_.host_blocks()[0] + at;
  const StreamRef stream = runtime_.compute_stream();
  const size_t bytes = static_cast<size_t>(from.rows) * from.row_bytes;
  if (from.stride_bytes == from.row_bytes && sends_parts_ && is_page_locked(runtime_.device(), from.data))
    return copy_bytes(stream, ring_.device_block(0) + at, from.data, bytes);
  // A part is on its way while the next one is copied.
  const int64_t rows_of_part =
      sends_parts_ ? std::max<int64_t>(1, kBytesOfPart / static_cast<int64_t>(from.row_bytes)) : from.rows;
  for (int64_t first = 0; first < from.rows; first += rows_of_part) {
    const int64_t rows = std::min(rows_of_part, from.rows - first);
    const int64_t rows_of_task = std::max<int64_t>(1, kBytesOfTask / static_cast<int64_t>(from.row_bytes));
    runtime_.threads().parallel_for(rows, rows_of_task, [&](int64_t begin, int64_t end) {
      begin += first, end += first;
      if (from.stride_bytes == from.row_bytes)
        std::memcpy(staged + static_cast<size_t>(begin) * from.row_bytes,
                    from.data + static_cast<size_t>(begin) * from.row_bytes,
                    static_cast<size_t>(end - begin) * from.row_bytes);
      else
        for (int64_t b = begin; b < end; ++b)
          std::memcpy(staged + static_cast<size_t>(b) * from.row_bytes,
                      from.data + static_cast<size_t>(b) * from.stride_bytes, from.row_bytes);
    });
    if (sends_parts_)
      ring_.upload(stream, 0, at + static_cast<size_t>(first) * from.row_bytes,
                   at + static_cast<size_t>(first + rows) * from.row_bytes);
  }
}

void ScoreSession::bring_dense(const ScoreRequest& request) {
  const BatchShape& shape = ring_.shape();
  const BatchLayout& layout = ring_.layout();
  const size_t row = static_cast<size_t>(shape.dense_dim) * sizeof(float),
               stride = request.dense->stride == 0 ? row : static_cast<size_t>(request.dense->stride) * sizeof(float);
  const auto* data = static_cast<const std::byte*>(request.dense->data);
  bring_rows({data + static_cast<size_t>(request.first) * stride, request.count, row, stride}, layout.dense);
  const int64_t missing = shape.samples - request.count;
  if (missing == 0) return;
  std::fill_n(ring_.on_host(0).dense + request.count * shape.dense_dim, missing * shape.dense_dim, 0.0f);
  if (sends_parts_)
    ring_.upload(runtime_.compute_stream(), 0, layout.dense + static_cast<size_t>(request.count) * row,
                 layout.dense + static_cast<size_t>(shape.samples) * row);
}

void ScoreSession::bring_keys(const ScoreRequest& request, size_t input, const std::vector<int64_t>& counts) {
  const InputView& view = *request.keys[input];
  const PackedKeys& packed = *ring_.on_host(0).tables[input].packed;
  const auto width = static_cast<size_t>(packed.key_bytes);
  const auto at = static_cast<size_t>(packed.keys);
  if (packed.slots > 0) {
    const auto slots = static_cast<size_t>(packed.slots);
    const size_t stride = (view.stride == 0 ? slots : static_cast<size_t>(view.stride)) * width;
    const auto* data = static_cast<const std::byte*>(view.data) + static_cast<size_t>(request.first) * stride;
    return bring_rows({data, request.count, slots * width, stride}, at);
  }
  fill_bags(request, input, counts);
  if (sends_parts_)
    ring_.upload(runtime_.compute_stream(), 0, static_cast<size_t>(packed.offsets),
                 at + static_cast<size_t>(packed.count) * width);
}

void ScoreSession::bring(const ScoreRequest& request) {
  const BatchView batch = ring_.on_host(0);
  const BatchShape& shape = ring_.shape();
  *batch.state = {};
  batch.state->valid_samples = batch.state->global_samples = static_cast<int32_t>(request.count);
  batch.state->samples = static_cast<int32_t>(shape.samples);
  std::vector<KeyForm> forms;
  std::vector<std::vector<int64_t>> counts;
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    counts.push_back(count_keys(request, t));
    forms.push_back(form_of(request, t, counts[t]));
  }
  batch.place(forms);
  const StreamRef stream = runtime_.compute_stream();
  sends_parts_ = runtime_.device().is_cuda() && ring_.used_bytes(0) > kBytesAtOnce;
  if (sends_parts_) ring_.upload(stream, 0, 0, ring_.layout().label);
  if (request.dense) bring_dense(request);
  for (size_t t = 0; t < shape.tables.size(); ++t) bring_keys(request, t, counts[t]);
  if (!sends_parts_) ring_.upload(stream, 0);
}

void ScoreSession::compute() {
  Context ctx(runtime_, runtime_.compute_stream(), batch_.state);
  ring_.unpack(ctx, 0);
  for (size_t e = 0; e < readers_.size(); ++e) {
    const size_t input = graph_.embedding_inputs[e];
    readers_[e]->lookup(ctx, batch_.keys[input], batch_.offsets[input], network_.embedding_output(e));
    if (const auto lengths = network_.embedding_lengths(e))
      ops::bag_lengths(ctx, batch_.offsets[input].data<const int32_t>(), *lengths);
  }
  network_.forward(ctx, binding_);
  const std::vector<Tensor> predictions = network_.predictions();
  for (size_t i = 0; i < results_.size(); ++i)
    copy_bytes(ctx.stream(), host_results_->data() + results_[i].offset, predictions[i].bytes(),
               bytes_to_copy(results_[i].spec));
}

void ScoreSession::deliver(const ScoreRequest& request) const {
  for (size_t i = 0; i < results_.size(); ++i) {
    const OutputView* to = request.outputs[i];
    if (!to) continue;
    const TensorSpec& spec = results_[i].spec;
    const auto* from = reinterpret_cast<const float*>(host_results_->data() + results_[i].offset);
    const int64_t columns = spec.row_elements(), stride = to->stride == 0 ? columns : to->stride;
    float* const first = to->data + request.first * stride;
    if (stride == columns && spec.row_stride == columns) {
      std::copy_n(from, request.count * columns, first);
      continue;
    }
    for (int64_t b = 0; b < request.count; ++b) std::copy_n(from + b * spec.row_stride, columns, first + b * stride);
  }
}

void ScoreSession::score(const ScoreRequest& request) {
  bring(request);
  program_->run();
  runtime_.compute_stream().synchronize();
  deliver(request);
}

}  // namespace hctr
