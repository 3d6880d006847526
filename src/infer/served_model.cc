#include "infer/served_model.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "core/device/current_device.h"
#include "infer/config_of_model.h"
#include "infer/evaluate_model.h"
#include "launch/choose_device.h"
#include "ops/gemm/blas.h"
#include "store/bound_version.h"

namespace hctr {
namespace {

ModelOptions options_of(const LoadOptions& from) {
  ModelOptions options;
  options.model = from.model;
  options.config = from.config;
  options.changes = from.changes;
  options.device = from.device;
  options.threads = from.threads;
  options.surroundings = from.surroundings;
  return options;
}

Log log_to(const std::function<void(std::string_view)>& note) {
  return note ? Log([note](Level, std::string_view line) { note(line); }) : Log::silent();
}

std::string names_of(const std::vector<ModelTensor>& tensors) {
  std::string names = "the model has ";
  for (size_t i = 0; i < tensors.size(); ++i) names += cat(i == 0 ? "'" : ", '", tensors[i].name, "'");
  return names;
}
void expect_known(const std::vector<ModelTensor>& tensors, std::string_view name, const char* what) {
  if (std::ranges::none_of(tensors, [&](const ModelTensor& tensor) { return tensor.name == name; }))
    throw Error(Kind::usage, cat("no ", what, " is named '", name, "'; ", names_of(tensors)));
}

/// On a GPU, rows of a store are read through a cache. If another program changes the rows, a cache would return old
/// rows, so the model needs a CPU.
DeviceChoice device_of(const LoadOptions& from) {
  if (!from.tables) return from.device;
  const CacheOfView cache = cache_of(*from.tables);
  if (from.device == DeviceChoice::automatic && cache.options.needs_gpu)
    if (const GpuSearch gpus = find_gpus(); gpus.count == 0)
      throw Error(Kind::device, cat("the GPU cache of the store needs a GPU, and none was found (", gpus.why_none,
                                    "); choose the CPU, or remove \"needs_gpu\""));
  if (cache.possible) return from.device;
  if (from.device == DeviceChoice::cuda)
    throw Error(Kind::config,
                "the rows of the store are changed by another program, and a GPU cache would return old rows: use "
                "device cpu");
  return DeviceChoice::cpu;
}

}  // namespace

/// Borrows a session for the duration of a batch.
class ServedModel::Lease {
 public:
  Lease(ServedModel& model, int64_t samples, bool inputs_on_device = false)
      : model_(model), session_(model.take(samples, inputs_on_device)) {}
  ~Lease() { model_.give_back(std::move(session_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ScoreSession* operator->() const { return session_.get(); }

 private:
  ServedModel& model_;
  std::unique_ptr<ScoreSession> session_;
};

ServedModel::ServedModel(const LoadOptions& from, bool caches_on_cpu, const SessionRules& rules)
    : most_samples_(from.most_samples), rules_(rules), log_(log_to(from.note)) {
  if (most_samples_ < 1) throw Error(Kind::usage, cat("a model that scores ", most_samples_, " samples at a time"));
  const Config config = config_of_model(options_of(from), log_);
  SavedModel saved = find_saved_model(from.model, config, from.surroundings.environment, log_, !from.tables);
  const Device device = choose_devices(device_of(from), GpuLists{}, {}, log_).at(0);
  if (!device.is_cuda()) ops::load_blas(from.surroundings);
  const CurrentDevice current(device);
  model_ = std::make_unique<LoadedModel>(
      config, std::move(saved), comm_,
      LoadOnRank{.device = device, .threads = from.threads.value_or(usable_cores()), .with_tables = !from.tables},
      log_);
  if (from.tables) tables_.emplace(from.tables, model_->config(), model_->replica());
  if (from.tables && (device.is_cuda() || caches_on_cpu)) tables_->use_cache(device);
  inputs_ = model_inputs(model_->config());
  outputs_ = model_outputs(model_->replica());
  internals_ = Lease(*this, 1)->internals();  // errors that would affect every batch are thrown here
}

void ServedModel::score(int64_t samples, std::span<const InputView> inputs, std::span<const OutputView> outputs,
                        std::span<float* const> internals) {
  if (samples < 0) throw Error(Kind::usage, cat("a batch of ", samples, " samples"));
  const CurrentDevice current(model_->device());
  ScoreRequest request = request_of(inputs, outputs);
  request.internals = internals;
  const bool on_device = std::ranges::any_of(inputs, [](const InputView& view) { return view.gpu >= 0; });
  const auto score_all = [&] {
    for (request.first = 0; request.first < samples; request.first += request.count) {
      request.count = std::min(samples - request.first, most_samples_);
      const Lease lease(*this, request.count, on_device);
      lease->score(request);
    }
  };
  if (tables_ && tables_->cache()) {
    // a batch makes one look-up, which reads one state of the tables
    if (samples <= most_samples_) return score_all();
    return tables_->cache()->in_one_state(score_all);
  }
  std::optional<StoreReading> reading;
  if (tables_) request.tables = &reading.emplace(tables_->read());
  // inputs in GPU memory need no upload that a piece could overlap
  if (const int64_t piece = piece_of(samples); piece < samples && !on_device)
    return score_pieces(samples, piece, request);
  score_all();
}

int64_t ServedModel::piece_of(int64_t samples) const {
  const bool divides = model_->device().is_cuda() || rules_.pieces_on_cpu;
  if (!divides || rules_.least_piece == 0 || samples < 2 * rules_.least_piece) return samples;
  const auto whole = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(samples)));
  return std::min(most_samples_, std::max(rules_.least_piece, whole / SessionRules::kMostPieces));
}

void ServedModel::score_pieces(int64_t samples, int64_t piece, const ScoreRequest& whole) {
  struct Piece {
    ScoreRequest request;
    Lease lease;
    bool finished = false;
    Piece(ServedModel& model, const ScoreRequest& request_) : request(request_), lease(model, request_.count) {}
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    ~Piece() {  // queued copies may still read the caller's memory
      if (!finished) lease->abandon();
    }
    void finish() {
      lease->finish(request);
      finished = true;
    }
  };
  std::unique_ptr<Piece> begun;
  ScoreRequest request = whole;
  for (request.first = 0; request.first < samples; request.first += request.count) {
    request.count = std::min(samples - request.first, piece);
    auto next = std::make_unique<Piece>(*this, request);
    next->lease->begin(next->request);
    if (begun) begun->finish();
    begun = std::move(next);
  }
  begun->finish();
}

std::optional<StoreCacheStatistics> ServedModel::cache_statistics() const {
  if (!tables_ || !tables_->cache()) return std::nullopt;
  return tables_->cache()->statistics();
}

std::vector<std::vector<float>> ServedModel::look_up(std::span<const std::vector<int64_t>> keys) {
  HCTR_EXPECT(keys.size() == config().embeddings.size(), "keys of ", keys.size(), " tables, but the model has ",
              config().embeddings.size());
  const CurrentDevice current(model_->device());
  std::optional<StoreReading> reading;
  if (tables_) reading.emplace(tables_->read());
  std::vector<std::vector<float>> vectors;
  for (size_t e = 0; e < keys.size(); ++e) vectors.push_back(look_up(e, keys[e], reading ? &*reading : nullptr));
  return vectors;
}

std::vector<float> ServedModel::look_up(size_t embedding, std::span<const int64_t> keys, const StoreReading* reading) {
  std::vector<float> vectors(keys.size() * static_cast<size_t>(model_->replica().table_spec(embedding).dim));
  if (keys.empty()) return vectors;
  std::unique_ptr<VectorLookUp> own;
  {
    const std::lock_guard lock(mutex_);
    if (auto& idle = idle_look_ups_[embedding]; !idle.empty()) {
      own = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!own) own = std::make_unique<VectorLookUp>(*model_, tables_ ? &*tables_ : nullptr, embedding);
  own->look_up(keys, reading, vectors);
  const std::lock_guard lock(mutex_);
  idle_look_ups_[embedding].push_back(std::move(own));
  return vectors;
}

EvaluationSummary ServedModel::evaluate(const std::string& source, const std::atomic<int>* stop) {
  if (tables_)
    throw Error(Kind::usage,
                "evaluate() needs a model with its own tables: load the model without LoadOptions::tables, or use "
                "huge_ctr eval");
  const CurrentDevice current(model_->device());
  const std::lock_guard lock(evaluating_);
  return evaluate_model(*model_, source, stop, log_);
}

std::vector<uint8_t> ServedModel::have_rows(size_t embedding, std::span<const SlotKey> keys) {
  if (tables_) return tables_->have_rows(embedding, keys);
  const CurrentDevice current(model_->device());
  const std::lock_guard lock(evaluating_);
  return model_->replica().have_rows(embedding, keys);
}

std::unique_ptr<ScoreSession> ServedModel::take(int64_t samples, bool inputs_on_device) {
  const auto capacity = std::min(most_samples_, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(samples))));
  bool copies_written = true;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::unique_ptr<ScoreSession>>& idle = idle_[{capacity, inputs_on_device}];
    if (!idle.empty()) {
      std::unique_ptr<ScoreSession> session = std::move(idle.back());
      idle.pop_back();
      return session;
    }
    copies_written = std::exchange(copies_written_, true);
  }
  return std::make_unique<ScoreSession>(*model_, tables_ ? &*tables_ : nullptr,
                                        SessionSetup{capacity, inputs_on_device, copies_written}, packed_, rules_);
}

void ServedModel::give_back(std::unique_ptr<ScoreSession> session) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    idle_[{session->capacity(), session->inputs_on_device()}].push_back(std::move(session));
  } catch (const std::bad_alloc&) {
    // If there is no memory for the list entry, the session is destroyed.
  }
}

void ServedModel::expect_reachable(int gpu, const std::string& what) const {
  const Device device = model_->device();
  if (gpu < 0 || (device.is_cuda() && gpu == device.index)) return;
  throw Error(Kind::usage, cat(what, " is on GPU ", gpu, ", but the model is on ",
                               device.is_cuda() ? cat("GPU ", device.index,
                                                      ": pass memory of that GPU or host "
                                                      "memory")
                                                : std::string("the CPU: pass host memory")));
}

ScoreRequest ServedModel::request_of(std::span<const InputView> inputs, std::span<const OutputView> outputs) const {
  ScoreRequest request;
  for (const InputView& view : inputs) expect_known(inputs_, view.name, "input");
  for (const OutputView& view : outputs) expect_known(outputs_, view.name, "output");
  for (const ModelTensor& input : inputs_) {
    const auto named = [&](const InputView& view) { return view.name == input.name; };
    const auto view = std::ranges::find_if(inputs, named);
    if (view == inputs.end()) throw Error(Kind::usage, cat("no input '", input.name, "'; ", names_of(inputs_)));
    if (std::ranges::count_if(inputs, named) > 1)
      throw Error(Kind::usage, cat("input '", input.name, "' is given twice"));
    expect_reachable(view->gpu, cat("input '", input.name, "'"));
    if (view->gpu >= 0 && view->offsets)
      throw Error(Kind::usage,
                  cat("input '", input.name, "' has bags of keys on a GPU: pass keys and offsets in host memory"));
    if (input.role == ModelTensor::Role::dense) {
      if (view->type != ElementType::f32)
        throw Error(Kind::usage, cat("input '", input.name, "': dense values must be f32"));
      request.dense = &*view;
    } else {
      if (view->type == ElementType::f32)
        throw Error(Kind::usage, cat("input '", input.name, "': keys must be integers of 32 or 64 bits"));
      request.keys.push_back(&*view);
    }
  }
  for (const ModelTensor& output : outputs_) {
    const auto view = std::ranges::find_if(outputs, [&](const OutputView& one) { return one.name == output.name; });
    if (view != outputs.end()) expect_reachable(view->gpu, cat("output '", output.name, "'"));
    request.outputs.push_back(view == outputs.end() ? nullptr : &*view);
  }
  return request;
}

}  // namespace hctr
