#include "use/score_session.h"

#include <algorithm>
#include <cstring>

#include "core/device/copy_bytes.h"
#include "net/graph/memory_plan.h"
#include "ops/embedding/bag_lengths.h"
#include "train/trainer_parts.h"

namespace hctr {
namespace {

/// Calls body(pointer) with the elements of their type.
template <class Body>
void with_keys(const InputView& view, const Body& body) {
  switch (view.type) {
    case ElementType::i32:
      return body(static_cast<const int32_t*>(view.data));
    case ElementType::u32:
      return body(static_cast<const uint32_t*>(view.data));
    case ElementType::i64:
    case ElementType::u64:
      return body(static_cast<const int64_t*>(view.data));  // a key is its 64 bits
    case ElementType::f32:
      break;
  }
  throw Error(Kind::usage, cat("input '", view.name, "': keys must be integers of 32 or 64 bits"));
}

/// Where the bags of a caller begin and end.
class Bags {
 public:
  Bags(const InputView& view, int64_t slots)
      : slots_(slots),
        stride_(view.stride == 0 ? slots : view.stride),
        wide_(view.offsets_type == ElementType::i64 ? static_cast<const int64_t*>(view.offsets) : nullptr),
        narrow_(view.offsets_type == ElementType::i32 ? static_cast<const int32_t*>(view.offsets) : nullptr) {
    if (view.offsets && !wide_ && !narrow_)
      throw Error(Kind::usage, cat("input '", view.name, "': offsets must be i32 or i64"));
  }
  bool one_each() const { return !wide_ && !narrow_; }
  int64_t begin(int64_t sample, int64_t slot) const {
    return one_each() ? sample * stride_ + slot : at(sample * slots_ + slot);
  }
  int64_t end(int64_t sample, int64_t slot) const {
    return one_each() ? begin(sample, slot) + 1 : at(sample * slots_ + slot + 1);
  }

 private:
  int64_t at(int64_t bag) const { return wide_ ? wide_[bag] : narrow_[bag]; }

  int64_t slots_, stride_;
  const int64_t* wide_;
  const int32_t* narrow_;
};

/// Bytes from the first element to the last.
size_t bytes_to_copy(const TensorSpec& spec) {
  return spec.rows() == 0
             ? 0
             : static_cast<size_t>((spec.rows() - 1) * spec.row_stride + spec.row_elements()) * size_of(spec.dtype);
}

RuntimeOptions runtime_options(const Config& config, int threads) {
  return {.threads = threads,
          .seed = config.solver.seed.value,
          .tf32 = config.solver.enable_tf32_compute,
          .tf32x3 = config.solver.tf32x3()};
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

std::vector<ModelTensor> model_outputs(const Config&, const Replica& replica) {
  std::vector<ModelTensor> outputs;
  const std::vector<Tensor> predictions = replica.predictions(Phase::evaluate);
  const std::vector<std::string> names = replica.tasks();
  for (size_t i = 0; i < predictions.size(); ++i)
    outputs.push_back({ModelTensor::Role::scores, names[i], {-1, predictions[i].row_elements()}});
  return outputs;
}

ScoreSession::ScoreSession(const Config& config, Replica& replica, Communicator& comm, int threads, int64_t samples,
                           bool fixed)
    : config_(config),
      replica_(replica),
      runtime_(replica.runtime().device(), runtime_options(config, threads)),
      graph_(wired_graph(config, samples, Phase::evaluate)),
      network_(graph_, Phase::evaluate, replica.weights(), replica.layer_state(), runtime_, comm),
      ring_(batch_layout(config, samples, runtime_.device()), 1, runtime_.device()),
      batch_(batch_tensors(ring_, 0, config.data.sparse.size())),
      binding_(network_.bind(batch_.label, batch_.dense)) {
  const BatchShape& shape = ring_.shape();
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
  if (!fixed) {
    Context ctx(runtime_, runtime_.compute_stream());
    network_.write_weight_copies(ctx, binding_);
    runtime_.compute_stream().synchronize();
  }
  binding_.weights_are_fixed = true;
  program_ = std::make_unique<Program>(runtime_.compute_stream(), config.solver.cuda_graph, [this] { compute(); });
}

int64_t ScoreSession::count_keys(const ScoreRequest& request, size_t input) const {
  const InputView& view = *request.keys[input];
  const BatchShape::Table& shape = ring_.shape().tables[input];
  const SparseInput& section = config_.data.sparse[input];
  const Bags bags(view, shape.slots);
  if (bags.one_each()) return request.count * shape.slots;
  int64_t count = 0;
  for (int64_t b = request.first; b < request.first + request.count; ++b)
    for (int64_t s = 0; s < shape.slots; ++s) {
      int64_t keys = bags.end(b, s) - bags.begin(b, s);
      if (keys < 0)
        throw Error(Kind::usage,
                    cat("input '", view.name, "': the offsets of slot ", s, " of sample ", b, " decrease"));
      if (shape.keep > 0) keys = std::min(keys, shape.keep);
      if (keys > section.kept_nnz(s))
        throw Error(Kind::usage, cat("input '", view.name, "': slot ", s, " of sample ", b, " has ", keys,
                                     " keys, and the model takes up to ", section.kept_nnz(s)));
      count += keys;
    }
  return count;
}

void ScoreSession::fill_keys(const ScoreRequest& request, size_t input) {
  const InputView& view = *request.keys[input];
  const BatchView batch = ring_.on_host(0);
  const BatchShape::Table& shape = ring_.shape().tables[input];
  const BatchView::Table& table = batch.tables[input];
  const Bags bags(view, shape.slots);
  with_keys(view, [&](const auto* keys) {
    int32_t at = 0;
    for (int64_t s = 0; s < shape.slots; ++s) {
      for (int64_t b = 0; b < request.count; ++b) {
        int64_t begin = bags.begin(request.first + b, s), end = bags.end(request.first + b, s);
        if (shape.keep > 0 && end - begin > shape.keep)
          shape.keep_last ? begin = end - shape.keep : end = begin + shape.keep;
        if (table.packed->offsets != PackedKeys::kOnes) table.offsets()[s * ring_.samples() + b] = at;
        for (int64_t k = begin; k < end; ++k) table.set_key(at++, static_cast<int64_t>(keys[k]));
      }
      if (table.packed->offsets != PackedKeys::kOnes)
        std::fill_n(table.offsets() + s * ring_.samples() + request.count, ring_.samples() - request.count, at);
    }
    if (table.packed->offsets != PackedKeys::kOnes) table.offsets()[shape.slots * ring_.samples()] = at;
  });
}

void ScoreSession::fill(const ScoreRequest& request) {
  const BatchView batch = ring_.on_host(0);
  const BatchShape& shape = ring_.shape();
  *batch.state = {};
  batch.state->valid_samples = batch.state->global_samples = static_cast<int32_t>(request.count);
  batch.state->samples = static_cast<int32_t>(shape.samples);
  std::fill_n(batch.label, shape.samples * shape.label_dim, 0.0f);
  std::vector<KeyForm> forms;
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    const InputView& view = *request.keys[t];
    const Bags bags(view, shape.tables[t].slots);
    KeyForm form{.fits_32 = view.type == ElementType::u32, .ones = bags.one_each(), .rows = request.count};
    form.count = count_keys(request, t);
    forms.push_back(form);
  }
  batch.place(forms);
  if (request.dense) {
    const auto* from = static_cast<const float*>(request.dense->data);
    const int64_t stride = request.dense->stride == 0 ? shape.dense_dim : request.dense->stride;
    for (int64_t b = 0; b < request.count; ++b)
      std::copy_n(from + (request.first + b) * stride, shape.dense_dim, batch.dense + b * shape.dense_dim);
    std::fill_n(batch.dense + request.count * shape.dense_dim, (shape.samples - request.count) * shape.dense_dim, 0.0f);
  }
  for (size_t t = 0; t < shape.tables.size(); ++t) fill_keys(request, t);
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
    for (int64_t b = 0; b < request.count; ++b)
      std::copy_n(from + b * spec.row_stride, columns, to->data + (request.first + b) * stride);
  }
}

void ScoreSession::score(const ScoreRequest& request) {
  fill(request);
  ring_.upload(runtime_.compute_stream(), 0);
  program_->run();
  runtime_.compute_stream().synchronize();
  deliver(request);
}

}  // namespace hctr
