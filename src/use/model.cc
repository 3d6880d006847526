#include "hctr/model.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "core/comm/self_comm.h"
#include "ops/gemm/blas.h"
#include "train/choose_device.h"
#include "use/model_use.h"
#include "use/saved_model.h"
#include "use/score_session.h"

namespace hctr {
namespace {

ModelOptions options_of(const LoadOptions& from) {
  ModelOptions options;
  options.model = from.model;
  options.config = from.config;
  options.changes = from.changes;
  options.device = from.device;
  options.threads = from.threads;
  return options;
}

Log log_to(const std::function<void(std::string_view)>& note) {
  return note ? Log([note](Level, std::string_view line) { note(line); }) : Log::silent();
}

/// A model that is loaded, and the sessions that score with it.
class ServedModel {
 public:
  explicit ServedModel(const LoadOptions& from)
      : log_(log_to(from.note)),
        options_(options_of(from)),
        config_(config_of_model(options_, log_)),
        saved_(find_saved_model(from.model, config_, log_)),
        device_(choose_devices(from.device, GpuLists{}, {}, log_).at(0)),
        threads_(from.threads.value_or(usable_cores())),
        most_samples_(from.most_samples) {
    if (most_samples_ < 1) throw Error(Kind::usage, cat("a model that scores ", most_samples_, " samples at a time"));
    use_saved_model(saved_, config_);
    if (!device_.is_cuda()) ops::load_blas();
    RowMemoryLimits memory;
    memory.move_every = 0;  // the uses of rows are counted in training
    runtime_ = std::make_unique<Runtime>(device_, RuntimeOptions{.threads = threads_,
                                                                 .seed = config_.solver.seed.value,
                                                                 .tf32 = config_.solver.enable_tf32_compute,
                                                                 .tf32x3 = config_.solver.tf32x3(),
                                                                 .row_memory = memory});
    replica_ =
        std::make_unique<Replica>(config_, *runtime_, comm_, 1, 1, 1, std::vector<Placement>{}, ReplicaUse::score);
    load_saved_model(saved_, *replica_, comm_, *runtime_, log_);
    runtime_->compute_stream().synchronize();
    inputs_ = model_inputs(config_);
    outputs_ = model_outputs(config_, *replica_);
    Lease(*this, 1);  // what fails for every batch fails now
  }

  const std::vector<ModelTensor>& inputs() const { return inputs_; }
  const std::vector<ModelTensor>& outputs() const { return outputs_; }
  const SavedModel& saved() const { return saved_; }
  std::string device() const { return describe(device_); }

  void score(int64_t samples, std::span<const InputView> inputs, std::span<const OutputView> outputs) {
    if (samples < 0) throw Error(Kind::usage, cat("a batch of ", samples, " samples"));
    ScoreRequest request = request_of(inputs, outputs);
    while (request.first < samples) {
      request.count = std::min(samples - request.first, most_samples_);
      const Lease lease(*this, request.count);
      lease->score(request);
      request.first += request.count;
    }
  }

 private:
  /// A session for a batch, while it lasts.
  class Lease {
   public:
    Lease(ServedModel& model, int64_t samples) : model_(model), session_(model.take(samples)) {}
    ~Lease() { model_.give_back(std::move(session_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ScoreSession* operator->() const { return session_.get(); }

   private:
    ServedModel& model_;
    std::unique_ptr<ScoreSession> session_;
  };

  std::unique_ptr<ScoreSession> take(int64_t samples) {
    const auto capacity = std::min(most_samples_, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(samples))));
    bool fixed = true;
    {
      const std::lock_guard lock(mutex_);
      std::vector<std::unique_ptr<ScoreSession>>& idle = idle_[capacity];
      if (!idle.empty()) {
        std::unique_ptr<ScoreSession> session = std::move(idle.back());
        idle.pop_back();
        return session;
      }
      fixed = std::exchange(copies_written_, true);
    }
    return std::make_unique<ScoreSession>(config_, *replica_, comm_, threads_, capacity, fixed);
  }
  void give_back(std::unique_ptr<ScoreSession> session) noexcept {
    const std::lock_guard lock(mutex_);
    idle_[session->capacity()].push_back(std::move(session));
  }

  ScoreRequest request_of(std::span<const InputView> inputs, std::span<const OutputView> outputs) const {
    ScoreRequest request;
    for (const InputView& view : inputs) expect_known(inputs_, view.name, "input");
    for (const OutputView& view : outputs) expect_known(outputs_, view.name, "output");
    for (const ModelTensor& input : inputs_) {
      const auto named = [&](const InputView& view) { return view.name == input.name; };
      const auto view = std::ranges::find_if(inputs, named);
      if (view == inputs.end()) throw Error(Kind::usage, cat("no input '", input.name, "'; ", names_of(inputs_)));
      if (std::ranges::count_if(inputs, named) > 1)
        throw Error(Kind::usage, cat("input '", input.name, "' is given twice"));
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
      request.outputs.push_back(view == outputs.end() ? nullptr : &*view);
    }
    return request;
  }

  static std::string names_of(const std::vector<ModelTensor>& tensors) {
    std::string names = "the model has ";
    for (size_t i = 0; i < tensors.size(); ++i) names += cat(i == 0 ? "'" : ", '", tensors[i].name, "'");
    return names;
  }
  static void expect_known(const std::vector<ModelTensor>& tensors, std::string_view name, const char* what) {
    if (std::ranges::none_of(tensors, [&](const ModelTensor& tensor) { return tensor.name == name; }))
      throw Error(Kind::usage, cat("no ", what, " is named '", name, "'; ", names_of(tensors)));
  }

  Log log_;
  ModelOptions options_;
  Config config_;
  SavedModel saved_;
  Device device_;
  int threads_;
  int64_t most_samples_;
  SelfComm comm_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Replica> replica_;
  std::vector<ModelTensor> inputs_, outputs_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<std::unique_ptr<ScoreSession>>> idle_;  // by capacity
  bool copies_written_ = false;
};

bool same_tensors(const std::vector<ModelTensor>& one, const std::vector<ModelTensor>& other) {
  return std::ranges::equal(one, other, [](const ModelTensor& a, const ModelTensor& b) {
    return a.role == b.role && a.name == b.name && a.shape == b.shape;
  });
}

}  // namespace

struct Model::State {
  std::mutex loading;          // one replace() at a time
  mutable std::mutex pointer;  // guards `served`
  std::shared_ptr<ServedModel> served;

  std::shared_ptr<ServedModel> get() const {
    const std::lock_guard lock(pointer);
    return served;
  }
};

Model::Model(const LoadOptions& from) : state_(std::make_unique<State>()) {
  state_->served = std::make_shared<ServedModel>(from);
}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

std::vector<ModelTensor> Model::inputs() const { return state_->get()->inputs(); }
std::vector<ModelTensor> Model::outputs() const { return state_->get()->outputs(); }
std::string Model::name() const { return state_->get()->saved().name; }
int64_t Model::iteration() const { return state_->get()->saved().iteration; }
std::string Model::device() const { return state_->get()->device(); }

void Model::score(int64_t samples, std::span<const InputView> inputs, std::span<const OutputView> outputs) const {
  state_->get()->score(samples, inputs, outputs);
}

void Model::replace(const LoadOptions& from) {
  const std::lock_guard lock(state_->loading);
  std::shared_ptr<ServedModel> next = std::make_shared<ServedModel>(from);
  const std::shared_ptr<ServedModel> before = state_->get();
  if (!same_tensors(before->inputs(), next->inputs()) || !same_tensors(before->outputs(), next->outputs()))
    throw Error(Kind::config, cat(next->saved().name, " has other inputs or outputs than ", before->saved().name));
  const std::lock_guard swap(state_->pointer);
  state_->served = std::move(next);
}

}  // namespace hctr
