#include "hctr/model.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/device/current_device.h"
#include "infer/predict_source.h"
#include "infer/served_model.h"

namespace hctr {
namespace {

bool same_tensors(const std::vector<ModelTensor>& one, const std::vector<ModelTensor>& other) {
  return std::ranges::equal(one, other, [](const ModelTensor& a, const ModelTensor& b) {
    return a.role == b.role && a.name == b.name && a.shape == b.shape;
  });
}

}  // namespace

/// The destructor and the functions below restore the current device of the caller's thread.
struct Model::State {
  std::mutex loading;          // lets only one thread call replace() at a time
  mutable std::mutex pointer;  // guards `served`
  std::shared_ptr<ServedModel> served;

  State() = default;
  ~State() {
    const CurrentDevice kept(served && served->on_gpu());
    served.reset();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<ServedModel> get() const {
    const std::lock_guard lock(pointer);
    return served;
  }
};

Model::Model(const LoadOptions& from) : state_(std::make_unique<State>()) {
  const CurrentDevice kept(from.device != DeviceChoice::cpu);
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
  std::shared_ptr<ServedModel> served = state_->get();
  const CurrentDevice kept(served->on_gpu());
  // destroyed before `kept`: this may be the last reference to the model
  const std::shared_ptr<ServedModel> mine = std::move(served);
  mine->score(samples, inputs, outputs);
}

void Model::predict(const std::string& source, const ScoredRows& rows) const {
  const std::shared_ptr<ServedModel> served = state_->get();
  const CurrentDevice kept(served->on_gpu());
  predict_source(*served, source, rows);
}

EvaluationSummary Model::evaluate(const std::string& source, const std::atomic<int>* stop) const {
  std::shared_ptr<ServedModel> served = state_->get();
  const CurrentDevice kept(served->on_gpu());
  const std::shared_ptr<ServedModel> mine = std::move(served);
  return mine->evaluate(source, stop);
}

void Model::encode(const std::string& source, bool partial, const Encoded& samples) const {
  encode_source(state_->get()->config(), source, partial, samples);
}

void Model::replace(const LoadOptions& from) {
  const CurrentDevice kept(from.device != DeviceChoice::cpu);
  const std::lock_guard lock(state_->loading);
  std::shared_ptr<ServedModel> next = std::make_shared<ServedModel>(from);
  const std::shared_ptr<ServedModel> before = state_->get();
  if (!same_tensors(before->inputs(), next->inputs()) || !same_tensors(before->outputs(), next->outputs()))
    throw Error(Kind::config, cat(next->saved().name, " has other inputs or outputs than ", before->saved().name));
  const std::lock_guard swap(state_->pointer);
  state_->served = std::move(next);
}

}  // namespace hctr
