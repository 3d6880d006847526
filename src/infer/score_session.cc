#include "infer/score_session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "core/base/short_waits.h"
#include "core/device/copy_bytes.h"
#include "core/device/copy_rows.h"
#include "infer/bag_packing.h"
#include "net/graph/memory_plan.h"
#include "ops/common/host_copy.h"
#include "score/batch_reading.h"
#include "score/key_views.h"

namespace hctr {
namespace {

// Minimum bytes that a thread copies.
constexpr int64_t kBytesOfTask = int64_t{1} << 18;
// A batch up to this size is uploaded completely, inside the recorded program. A larger batch is uploaded in parts, as
// soon as their data are ready.
constexpr size_t kBytesAtOnce = size_t{1} << 18;
constexpr int64_t kBytesOfPart = int64_t{1} << 22;

/// Bytes from the start of the first element to the end of the last.
size_t bytes_to_copy(const TensorSpec& spec) {
  return spec.rows() == 0
             ? 0
             : static_cast<size_t>((spec.rows() - 1) * spec.row_stride + spec.row_elements()) * size_of(spec.dtype);
}

/// Describes the first `rows` rows of a tensor.
TensorSpec first_rows(const TensorSpec& spec, int64_t rows) {
  Shape shape = spec.shape;
  shape[0] = rows;
  return {spec.dtype, shape, spec.row_stride};
}

}  // namespace

RuntimeOptions session_options(LoadedModel& model) {
  RuntimeOptions options = model.runtime().options();
  options.row_memory = {};
  return options;
}

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

int64_t InternalTensor::row_elements() const {
  int64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i];
  return elements;
}

ScoreSession::ScoreSession(LoadedModel& model, const StoreTables* tables, const SessionSetup& setup,
                           ops::PackedWeights& packed, const SessionRules& rules)
    : config_(model.config()),
      rules_(rules),
      runtime_(model.device(), session_options(model)),
      ring_(batch_layout(config_, setup.samples, runtime_.device()), 1, runtime_.device()),
      cached_rows_(tables && tables->cache() ? std::make_optional<CachedRows>(*tables, runtime_.device())
                                             : std::nullopt),
      forward_(model.replica(), config_, runtime_, model.comm(), ring_.shape(),
               [&](size_t e, int64_t capacity) -> std::unique_ptr<TableReader> {
                 return tables ? reader_of(*tables, e, capacity) : nullptr;
               }),
      inputs_on_device_(setup.inputs_on_device),
      sends_parts_(runtime_.device().is_cuda() && (setup.inputs_on_device || ring_.layout().bytes > kBytesAtOnce)),
      copies_by_kernel_(runtime_.device().is_cuda() && !sends_parts_ &&
                        ring_.layout().bytes <= rules_.kernel_copy_bytes),
      batch_(batch_tensors(ring_, 0, config_.data.sparse.size())),
      binding_(forward_.network().bind(batch_.label, batch_.dense)) {
  const BatchShape& shape = ring_.shape();
  size_t bytes = 0;
  for (const Tensor& prediction : forward_.network().predictions()) {
    results_.push_back({prediction.spec(), bytes});
    bytes += (prediction.spec().bytes() + 255) / 256 * 256;
  }
  host_results_.emplace(runtime_.device(), bytes + sizeof(uint32_t));
  done_ = reinterpret_cast<uint32_t*>(host_results_->data() + bytes);
  copies_by_kernel_ &= bytes <= rules_.kernel_copy_bytes && results_.size() <= ops::kMostHostCopies;
  internals_ = forward_.logits(binding_);
  for (size_t e = 0; e < config_.embeddings.size(); ++e) internals_.push_back(forward_.network().embedding_output(e));
  host_internals_.resize(internals_.size());
  const BatchView batch = ring_.on_host(0);
  std::fill_n(batch.label, shape.samples * shape.label_dim, 0.0f);  // labels do not affect predictions
  ring_.upload(runtime_.compute_stream(), 0, ring_.layout().label, ring_.layout().dense);
  if (!setup.copies_written) {
    Context ctx(runtime_, runtime_.compute_stream());
    forward_.network().write_weight_copies(ctx, binding_);
    for (const LayerIo& io : binding_.calls)
      for (const Tensor& w : io.weights)
        if (rules_.packs_weights) packed.add(w);
    runtime_.compute_stream().synchronize();
  }
  binding_.weights_are_fixed = true;
  rules_.forward.packed = &packed;
  program_ = std::make_unique<Program>(runtime_.compute_stream(), config_.solver.cuda_graph,
                                       [this](Recording& recording) { compute(recording); });
}

std::unique_ptr<TableReader> ScoreSession::reader_of(const StoreTables& tables, size_t embedding,
                                                     int64_t key_capacity) {
  if (cached_rows_) return cached_rows_->reader(runtime_, embedding, ring_.samples(), key_capacity);
  return tables.reader(embedding, ring_.samples(), key_capacity, reading_);
}

void ScoreSession::bring_rows(const RowsOfCaller& from, size_t at) {
  std::byte* const staged = ring_.host_blocks()[0] + at;
  const StreamRef stream = runtime_.compute_stream();
  const size_t bytes = static_cast<size_t>(from.rows) * from.row_bytes;
  if (from.on_device)
    return copy_rows(stream, {ring_.device_block(0) + at, from.row_bytes}, {from.data, from.stride_bytes}, from.rows,
                     from.row_bytes);
  if (from.stride_bytes == from.row_bytes && sends_parts_ && is_page_locked(runtime_.device(), from.data))
    return copy_bytes(stream, ring_.device_block(0) + at, from.data, bytes);
  // The upload of a part overlaps the copy of the next part.
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
  bring_rows({data + static_cast<size_t>(request.first) * stride, request.count, row, stride, request.dense->gpu >= 0},
             layout.dense);
  const int64_t missing = shape.samples - request.count;
  if (missing == 0) return;
  std::fill_n(ring_.on_host(0).dense + request.count * shape.dense_dim, missing * shape.dense_dim, 0.0f);
  if (sends_parts_)
    ring_.upload(runtime_.compute_stream(), 0, layout.dense + static_cast<size_t>(request.count) * row,
                 layout.dense + static_cast<size_t>(shape.samples) * row);
}

void ScoreSession::bring_ones(const ScoreRequest& request, size_t input) {
  const InputView& view = *request.keys[input];
  const PackedKeys& packed = *ring_.on_host(0).tables[input].packed;
  const auto width = static_cast<size_t>(packed.key_bytes), slots = static_cast<size_t>(packed.slots);
  const size_t stride = (view.stride == 0 ? slots : static_cast<size_t>(view.stride)) * width;
  const auto* data = static_cast<const std::byte*>(view.data) + static_cast<size_t>(request.first) * stride;
  bring_rows({data, request.count, slots * width, stride, view.gpu >= 0}, static_cast<size_t>(packed.keys));
}

void ScoreSession::bring(const ScoreRequest& request) {
  const BatchView batch = ring_.on_host(0);
  const BatchShape& shape = ring_.shape();
  *batch.state = {};
  batch.state->valid_samples = batch.state->global_samples = static_cast<int32_t>(request.count);
  batch.state->samples = static_cast<int32_t>(shape.samples);
  // Inputs with one key per slot are copied unchanged; bags are reordered by slot.
  std::vector<KeyForm> forms;
  std::vector<std::optional<BagPacking>> bags(shape.tables.size());
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    const InputView& view = *request.keys[t];
    if (view.offsets)
      bags[t].emplace(runtime_.threads(), view, request.first, request.count, config_.data.sparse[t], shape.tables[t]);
    forms.push_back(bags[t] ? KeyForm{.count = bags[t]->keys(), .fits_32 = bags[t]->fits_32()}
                            : form_of_ones(view, request.count, shape.tables[t].slots));
  }
  batch.place(forms);
  const StreamRef stream = runtime_.compute_stream();
  if (sends_parts_) ring_.upload(stream, 0, 0, ring_.layout().label);
  if (request.dense) bring_dense(request);
  for (size_t t = 0; t < bags.size(); ++t)
    if (!bags[t]) bring_ones(request, t);
  for (size_t t = 0; t < bags.size(); ++t) {
    if (!bags[t]) continue;
    const PackedKeys& packed = *batch.tables[t].packed;
    bags[t]->write(batch.tables[t], ring_.samples());
    if (sends_parts_)
      ring_.upload(stream, 0, static_cast<size_t>(packed.offsets),
                   static_cast<size_t>(packed.keys + int64_t{packed.count} * packed.key_bytes));
  }
}

void ScoreSession::compute(Recording& recording) {
  Context ctx(runtime_, runtime_.compute_stream(), batch_.state);
  std::optional<ScoringScope> scope;
  if (copies_by_kernel_) {
    const ops::HostCopy batch{ring_.device_block(0), ring_.host_blocks()[0], ring_.layout().bytes};
    ops::copy_with_host(ctx, {&batch, 1}, nullptr);
    scope.emplace(rules_.forward);  // the next kernel can start early, because it follows a kernel
  } else if (!sends_parts_) {
    ring_.upload(ctx.stream(), 0, 0, ring_.layout().bytes);
  }
  ring_.unpack(ctx, 0);
  if (!scope) scope.emplace(rules_.forward);
  if (cached_rows_) {
    recording.outside([this] { cached_rows_->look_up(ring_, forward_.embedding_inputs(), runtime_.compute_stream()); });
    recording.cut();
  }
  forward_.run(ctx, batch_, binding_);
  const std::vector<Tensor> predictions = forward_.network().predictions();
  std::vector<ops::HostCopy> copies;
  for (size_t i = 0; i < results_.size(); ++i)
    copies.push_back(
        {host_results_->data() + results_[i].offset, predictions[i].bytes(), bytes_to_copy(results_[i].spec)});
  if (copies_by_kernel_) return ops::copy_with_host(ctx, copies, done_);
  for (const ops::HostCopy& copy : copies) copy_bytes(ctx.stream(), copy.to, copy.from, copy.bytes);
}

void ScoreSession::deliver(const ScoreRequest& request) const {
  for (size_t i = 0; i < results_.size(); ++i) {
    const OutputView* to = request.outputs[i];
    if (!to || to->gpu >= 0) continue;
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

std::vector<InternalTensor> ScoreSession::internals() const {
  std::vector<InternalTensor> all;
  for (size_t i = 0; i < internals_.size(); ++i) {
    const bool logits = i < results_.size();
    const Shape& shape = internals_[i].shape();
    all.push_back({logits ? InternalTensor::Kind::logits : InternalTensor::Kind::vectors,
                   logits ? i : i - results_.size(),
                   {-1}});
    for (int d = 1; d < shape.rank(); ++d) all.back().shape.push_back(shape[d]);
  }
  return all;
}

void ScoreSession::fetch_internals(const ScoreRequest& request) {
  if (!runtime_.device().is_cuda()) return;
  for (size_t i = 0; i < request.internals.size(); ++i) {
    if (!request.internals[i]) continue;
    const size_t bytes = bytes_to_copy(first_rows(internals_[i].spec(), request.count));
    std::optional<HostBuffer>& copy = host_internals_[i];
    if (!copy || copy->bytes() < bytes) copy.emplace(runtime_.device(), bytes);
    copy_bytes(runtime_.compute_stream(), copy->data(), internals_[i].bytes(), bytes);
  }
}

void ScoreSession::deliver_internals(const ScoreRequest& request) const {
  for (size_t i = 0; i < request.internals.size(); ++i) {
    if (!request.internals[i]) continue;
    const TensorSpec& spec = internals_[i].spec();
    const std::byte* const data = host_internals_[i] ? host_internals_[i]->data() : internals_[i].bytes();
    const int64_t elements = spec.row_elements();
    float* const to = request.internals[i] + request.first * elements;
    dispatch_float(spec.dtype, [&]<class T>() {
      const T* const from = reinterpret_cast<const T*>(data);
      for (int64_t b = 0; b < request.count; ++b)
        for (int64_t c = 0; c < elements; ++c) to[b * elements + c] = static_cast<float>(from[b * spec.row_stride + c]);
    });
  }
}

void ScoreSession::wait_for_callers(const ScoreRequest& request) {
  const auto wait = [&](const auto* view) {
    if (view && view->gpu >= 0) CallerStream(runtime_.device(), view->stream).make_wait(runtime_.compute_stream());
  };
  wait(request.dense);
  for (const InputView* keys : request.keys) wait(keys);
  for (const OutputView* output : request.outputs) wait(output);
}

void ScoreSession::send_results(const ScoreRequest& request) const {
  const std::vector<Tensor> predictions = forward_.network().predictions();
  for (size_t i = 0; i < results_.size(); ++i) {
    const OutputView* to = request.outputs[i];
    if (!to || to->gpu < 0) continue;
    const TensorSpec& spec = results_[i].spec;
    const auto row = static_cast<size_t>(spec.row_elements()) * sizeof(float);
    const size_t stride = to->stride == 0 ? row : static_cast<size_t>(to->stride) * sizeof(float);
    copy_rows(runtime_.compute_stream(),
              {reinterpret_cast<std::byte*>(to->data) + static_cast<size_t>(request.first) * stride, stride},
              {predictions[i].bytes(), static_cast<size_t>(spec.row_stride) * sizeof(float)}, request.count, row);
  }
}

void ScoreSession::score(const ScoreRequest& request) {
  try {
    begin(request);
    finish(request);
  } catch (...) {
    abandon();  // queued work may still use the session's memory, which the next request overwrites
    throw;
  }
}

void ScoreSession::begin(const ScoreRequest& request) {
  wait_for_callers(request);
  bring(request);
  reading_ = request.tables;
  std::atomic_ref(*done_).store(0, std::memory_order_relaxed);
  program_->run();
  send_results(request);
  fetch_internals(request);
}

void ScoreSession::finish(const ScoreRequest& request) {
  wait_for_scores(request);
  deliver(request);
  deliver_internals(request);
}

void ScoreSession::abandon() const noexcept {
  try {
    runtime_.compute_stream().synchronize();
  } catch (const std::exception&) {  // the error that ended the batch is reported instead
  }
}

void ScoreSession::wait_for_scores(const ScoreRequest& request) const {
  // Poll for at most kMost, which suffices for a small batch, then synchronize. If a kernel fails, `*done_` stays 0,
  // and the synchronization reports the error.
  constexpr std::chrono::microseconds kMost(1000);
  const auto is_done = [&] { return std::atomic_ref(*done_).load(std::memory_order_acquire) != 0; };
  const bool reads_only_results =
      std::ranges::none_of(request.outputs, [](const OutputView* to) { return to && to->gpu >= 0; }) &&
      std::ranges::none_of(request.internals, [](const float* to) { return to != nullptr; });
  if (copies_by_kernel_ && rules_.polls && reads_only_results) {
    spin_until(kMost, is_done);
    if (is_done()) return;
  }
  runtime_.compute_stream().synchronize();
}

}  // namespace hctr
