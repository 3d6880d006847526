#include "score/scorer.h"

#include "core/base/current_error.h"
#include "core/comm/collective_error.h"
#include "core/device/copy_bytes.h"
#include "formats/catalog/unshared_slot.h"
#include "score/batch_reading.h"
#include "score/disk_tables.h"

namespace hctr {
namespace {

/// Bytes from the first to the last element. Excludes the padding after the last row, which may belong to another
/// tensor.
size_t extent(const TensorSpec& spec) {
  if (spec.rows() == 0) return 0;
  return static_cast<size_t>((spec.rows() - 1) * spec.row_stride + spec.row_elements()) * size_of(spec.dtype);
}

/// Ensures that different values of the group slot have different keys, if the data section names the slot's column. If
/// values may share a key, adds a slot with a key per value to `data` and selects this slot for groups.
ScorerOptions with_own_groups(ScorerOptions options, DataSection& data) {
  if (!options.groups || options.given) return options;
  const auto [input, slot] = *options.groups;
  if (const auto added = add_unshared_slot(data, input, slot)) options.groups = {*added, 0};
  return options;
}

BatchLayout with_tables_of(const DataSection& data, const BatchLayout& layout) {
  if (data.sparse.size() == layout.shape.tables.size()) return layout;
  return BatchLayout(batch_shape(data, layout.shape.samples), layout.dense_stride, layout.dense_dtype);
}

}  // namespace

Scorer::Scorer(const Config& config, Communicator& comm, Replica& model, const BatchLayout& layout,
               const ScorerOptions& options, const Log& log)
    : runtime_(options.own_memory_in ? *options.own_memory_in : model.runtime()),
      comm_(comm),
      data_(config.data),
      options_(with_own_groups(options, data_)),
      layout_(with_tables_of(data_, layout)),
      cache_(runtime_.device(), options.cached),
      ring_(layout_, cache_.has_capacity() ? 2 * kBuffers : kBuffers, runtime_.device()),
      pass_(options.own_memory_in ? forward_pass_in_own_memory(model, config, runtime_, comm, layout_.shape)
                                  : forward_pass_of(model)),
      check_(config, model.graph(), options.given ? "the samples given" : options.source.path, options.check_labels),
      counted_(config, model.graph()),
      sparse_inputs_(config.data.sparse.size()),
      records_(config.solver.cuda_graph && !runtime_.options().sync_launches && disk_folders(runtime_, model).empty() &&
               model.fixed_sizes()) {
  if (options.match_keys) matches_.emplace(config, comm, model, options.groups);
  const size_t tasks = model.tasks().size();
  if (options.losses) losses_.assign(tasks > 1 ? 1 + tasks : 1, {});
  for (ResultTensor& loss : losses_) loss = add_result(pass_->losses()[0].spec());
  if (options.predictions) {
    const auto labels = pass_->labels(pass_->bind(batch_tensors(ring_, 0, sparse_inputs_)));
    for (const Tensor& prediction : pass_->predictions()) predictions_.push_back(add_result(prediction.spec()));
    for (const Tensor& label : labels) labels_.push_back(add_result(label.spec()));
  }
  for (int s = 0; s < ring_.buffers(); ++s) results_.emplace_back(runtime_.device(), result_bytes_);
  record_again();
  std::vector<std::byte*> read_into = ring_.host_blocks();
  read_into.resize(kBuffers);
  if (options_.given) {
    given_.emplace(layout_, read_into,
                   RankOfBatch{.batch = config.solver.eval_batch(), .rank = comm.rank(), .ranks = comm.size()}, true,
                   runtime_.threads());
    return;
  }
  ReaderOptions reading = reader_options(config, comm, config.solver.eval_batch(), options.continues);
  reading.from = options.from;
  reader_ = std::make_unique<Reader>(data_, options_.source, layout_, read_into, reading, log);
}

Scorer::~Scorer() {
  if (left_waiting_) leave_behind_if_stuck(reader_, ring_);
}

Scorer::ResultTensor Scorer::add_result(const TensorSpec& spec) {
  const ResultTensor piece{spec, result_bytes_};
  result_bytes_ += (spec.bytes() + 255) / 256 * 256;
  return piece;
}

const float* Scorer::result(int buffer, const ResultTensor& piece) const {
  return reinterpret_cast<const float*>(results_[static_cast<size_t>(buffer)].data() + piece.offset);
}

View<const float, 2> Scorer::view(int buffer, const ResultTensor& piece) const {
  return Tensor(results_[static_cast<size_t>(buffer)].data() + piece.offset, piece.spec, Device{})
      .matrix<const float>();
}

std::vector<std::optional<int64_t>> Scorer::groups(int buffer, int64_t rows) const {
  if (!options_.groups) return {};
  const auto [input, of_input] = *options_.groups;
  const BatchView batch = ring_.on_host(buffer);
  const BatchView::Table& table = batch.tables[input];
  const int64_t bags = of_input * ring_.samples();
  std::vector<std::optional<int64_t>> groups(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r)
    if (table.offset(bags + r) < table.offset(bags + r + 1))
      groups[static_cast<size_t>(r)] = table.key(table.offset(bags + r));
  return groups;
}

void Scorer::record_again() {
  runtime_.compute_stream().synchronize();
  buffers_.clear();
  for (int s = 0; s < ring_.buffers(); ++s) buffers_.push_back(make_buffer(s));
}

Scorer::Buffer Scorer::make_buffer(int buffer) {
  const BatchTensors tensors = batch_tensors(ring_, buffer, sparse_inputs_);
  const auto body = [this, buffer, tensors, binding = pass_->bind(tensors)] {
    Context ctx(runtime_, runtime_.compute_stream(), tensors.state);
    ring_.unpack(ctx, buffer);
    pass_->run(ctx, tensors, binding);
    std::byte* results = results_[static_cast<size_t>(buffer)].data();
    const auto fetch = [&](const std::vector<ResultTensor>& pieces, const std::vector<Tensor>& from) {
      for (size_t i = 0; i < pieces.size(); ++i)
        copy_bytes(ctx.stream(), results + pieces[i].offset, from[i].bytes(), extent(pieces[i].spec));
    };
    fetch(losses_, pass_->losses());
    fetch(predictions_, pass_->predictions());
    fetch(labels_, pass_->labels(binding));
  };
  return {Program(runtime_.compute_stream(), records_, body), Event(runtime_.device())};
}

bool Scorer::run(int64_t steps, const std::atomic<int>* stop, const Visit& visit) {
  if (reader_ && !fresh_ && !options_.continues) reader_->reset(cache_.behind());
  fresh_ = false;
  matching_ = matches_ && cache_.size() == 0;  // cached batches were counted in the first pass
  if (matching_) matches_->clear();
  std::optional<Running> running, next;
  bool fetched = false;  // whether `next` is set or the set of samples has ended
  std::optional<Error> failed;
  const auto note_error = [&](const auto& body) {
    const std::optional<Error> error = error_of(body);
    if (!failed) failed = error;
  };
  for (int64_t batch = 0; !options_.batches || batch < *options_.batches;) {
    // errors of earlier batches, checked here because a pass may be long
    if (!failed) note_error([&] { pass_->check_keys(); });
    if (!failed && !fetched)  // after an error some buffer may still be in use
      note_error([&] { fetched = fetch(batch, stop, next); });
    const bool ends = failed || (stop && *stop != 0);
    if (comm_.any(ends || !fetched)) {  // also synchronizes the ranks and detects a rank that hangs
      if (!comm_.any(ends)) continue;   // some rank is still waiting for data
      throw_on_all_ranks(comm_, failed);
      runtime_.compute_stream().synchronize();
      return false;
    }
    if (!next) break;
    start(*next, steps);
    if (running) note_error([&] { deliver(*running, visit); });
    running = std::exchange(next, std::nullopt);
    fetched = false;
    ++batch;
  }
  if (running && !failed) note_error([&] { deliver(*running, visit); });
  run_on_all_ranks(comm_, [&] {
    if (failed) throw *failed;
    pass_->check_keys();
  });
  return true;
}

bool Scorer::fetch(int64_t batch, const std::atomic<int>* stop, std::optional<Running>& next) {
  if (batch < cache_.size()) {
    next = Running{kBuffers + static_cast<int>(batch % kBuffers), batch};
    return true;
  }
  if (given_) {
    const std::optional<int> buffer = given_->next();
    if (!buffer) return true;
    take(*buffer, 0);
    next = Running{*buffer, std::nullopt};
    return true;
  }
  left_waiting_ = wait_for_batch(*reader_, stop, kToWaitForData) != Waited::batch;
  if (left_waiting_) return false;
  const std::optional<int> buffer = reader_->next();
  if (!buffer) return true;
  take(*buffer, reader_->samples_estimated() ? 0 : reader_->samples());
  next = Running{*buffer, std::nullopt, reader_->take_passed_on()};
  return true;
}

void Scorer::take(int buffer, int64_t samples_in_set) {
  check_.expect(ring_.on_host(buffer), samples_in_set);
  pass_->expect_keys(ring_.on_host(buffer));
  counted_.add(ring_.on_host(buffer));
}

void Scorer::start(const Running& batch, int64_t steps) {
  const StreamRef stream = runtime_.compute_stream();
  if (batch.cached) cache_.restore(stream, ring_, batch.buffer, *batch.cached);
  StepState& state = ring_.state(batch.buffer);
  state.step = steps;
  if (given_)
    given_->upload(stream, ring_, batch.buffer);
  else
    batch.cached ? ring_.upload_state(stream, batch.buffer) : ring_.upload(stream, batch.buffer);
  buffers_[static_cast<size_t>(batch.buffer)].program.run();
  if (!batch.cached && cache_.has_capacity())
    cache_.keep(stream, ring_, batch.buffer, groups(batch.buffer, state.valid_samples), reader_->position());
  buffers_[static_cast<size_t>(batch.buffer)].done.record(stream);
}

void Scorer::deliver(Running& batch, const Visit& visit) {
  buffers_[static_cast<size_t>(batch.buffer)].done.synchronize();
  const StepState& state = ring_.state(batch.buffer);
  ScoredBatch scored{.rows = state.valid_samples, .samples = state.global_samples};
  for (const ResultTensor& loss : losses_) scored.losses.push_back(*result(batch.buffer, loss));
  for (const ResultTensor& prediction : predictions_) scored.predictions.push_back(view(batch.buffer, prediction));
  for (const ResultTensor& label : labels_) scored.labels.push_back(view(batch.buffer, label));
  scored.groups = batch.cached ? cache_.groups(*batch.cached) : groups(batch.buffer, state.valid_samples);
  scored.passed_on = std::move(batch.passed_on);
  if (!batch.cached) scored.inputs = ring_.on_host(batch.buffer);
  if (matching_ && scored.inputs) matches_->add(*scored.inputs, scored.rows);
  visit(scored);
  if (!batch.cached && reader_) reader_->release(batch.buffer);
}

}  // namespace hctr
