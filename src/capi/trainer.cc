#include "hctr/trainer.h"

#include <memory>
#include <vector>

#include "capi/call.h"
#include "capi/model_inputs.h"
#include "core/base/expect.h"

struct hctr_trainer {
  explicit hctr_trainer(const hctr::TrainerOptions& options) : trainer(options), inputs(trainer.inputs()) {}
  hctr::Trainer trainer;
  std::vector<hctr::ModelTensor> inputs;
};

namespace hctr::capi {
namespace {

TrainerOptions trainer_options(const hctr_trainer_options* given) {
  const hctr_trainer_options from = read_struct(given, "hctr_trainer_options");
  TrainerOptions to;
  if (!from.config_text) expect_given(from.config, "hctr_trainer_options: config and config_text");
  if (from.config) to.config = from.config;
  if (from.config_text) to.config_text = from.config_text;
  if (from.change_count > 0) expect_given(from.changes, "hctr_trainer_options: changes");
  for (size_t i = 0; i < from.change_count; ++i) to.changes.emplace_back(from.changes[i]);
  to.run_folder = from.run_folder != nullptr;
  if (from.run_folder) to.run_dir = from.run_folder;
  if (from.resume) to.resume = from.resume;
  if (from.device < HCTR_AUTOMATIC || from.device > HCTR_CUDA)
    throw Error(Kind::usage, cat("hctr_trainer_options: device is ", from.device));
  to.device = static_cast<DeviceChoice>(from.device);
  if (from.threads != 0) to.threads = from.threads;
  to.surroundings.log = log_sink(from.log, from.log_user);
  return to;
}

hctr_trainer& trainer_at(hctr_trainer* trainer) {
  expect_given(trainer, "the hctr_trainer");
  return *trainer;
}

hctr_trainer_state state_of(const TrainerState& from) {
  return {sizeof(hctr_trainer_state), from.iteration,          from.samples, from.loss,        from.mean_loss,
          from.learning_rate,         from.samples_per_second, from.seconds, from.evaluated_at};
}

Trainer::Callback callback_of(hctr_trainer_callback callback, void* user) {
  if (!callback) return {};
  return [callback, user](const TrainerState& at) {
    const hctr_trainer_state state = state_of(at);
    return callback(user, &state) == 0;
  };
}

void note_end(TrainEnd end, int32_t* ended) {
  if (ended) *ended = static_cast<int32_t>(end);
}

std::vector<InputView> inputs_of(const hctr_trainer& trainer, int64_t samples, const hctr_model_input* inputs,
                                 size_t count) {
  std::vector<InputView> views;
  for (size_t i = 0; i < count; ++i)
    views.push_back(input_of(trainer.inputs, read_struct(inputs, i, "hctr_model_input"), samples));
  return views;
}

void pass_metrics(const std::map<std::string, double>& metrics, hctr_metric metric, void* user) {
  for (const auto& [name, value] : metrics)
    if (metric) metric(user, name.c_str(), value);
}

std::vector<std::string> names_of(const char* const* names, size_t count) {
  if (count > 0) expect_given(names, "the names of layers and tables");
  return {names, names + count};
}

}  // namespace
}  // namespace hctr::capi

using hctr::capi::trainer_at;

hctr_status hctr_trainer_create(const hctr_trainer_options* options, hctr_trainer** trainer) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(trainer, "hctr_trainer_create(): the place of the handle");
    *trainer = std::make_unique<hctr_trainer>(hctr::capi::trainer_options(options)).release();
  });
}

void hctr_trainer_destroy(hctr_trainer* trainer) { delete trainer; }

hctr_status hctr_trainer_on_display(hctr_trainer* trainer, hctr_trainer_callback callback, void* user) {
  return hctr::capi::call([&] { trainer_at(trainer).trainer.on_display(hctr::capi::callback_of(callback, user)); });
}

hctr_status hctr_trainer_on_evaluation(hctr_trainer* trainer, hctr_trainer_callback callback, void* user) {
  return hctr::capi::call([&] { trainer_at(trainer).trainer.on_evaluation(hctr::capi::callback_of(callback, user)); });
}

hctr_status hctr_trainer_fit(hctr_trainer* trainer, int64_t iteration, int32_t* ended) {
  return hctr::capi::call([&] {
    hctr::FitOptions options;
    if (iteration != 0) options.iteration = iteration;
    hctr::capi::note_end(trainer_at(trainer).trainer.fit(options), ended);
  });
}

hctr_status hctr_trainer_step(hctr_trainer* trainer, int64_t iterations, int32_t* ended) {
  return hctr::capi::call([&] { hctr::capi::note_end(trainer_at(trainer).trainer.step(iterations), ended); });
}

hctr_status hctr_trainer_step_samples(hctr_trainer* trainer, int64_t samples, const hctr_model_input* inputs,
                                      size_t input_count, int32_t* ended) {
  return hctr::capi::call([&] {
    hctr_trainer& of = trainer_at(trainer);
    const auto views = hctr::capi::inputs_of(of, samples, inputs, input_count);
    hctr::capi::note_end(of.trainer.step(hctr::SamplesView{samples, views}), ended);
  });
}

hctr_status hctr_trainer_evaluate(hctr_trainer* trainer, hctr_metric metric, void* user) {
  return hctr::capi::call([&] { hctr::capi::pass_metrics(trainer_at(trainer).trainer.evaluate(), metric, user); });
}

hctr_status hctr_trainer_evaluate_samples(hctr_trainer* trainer, int64_t samples, const hctr_model_input* inputs,
                                          size_t input_count, hctr_metric metric, void* user) {
  return hctr::capi::call([&] {
    hctr_trainer& of = trainer_at(trainer);
    const auto views = hctr::capi::inputs_of(of, samples, inputs, input_count);
    hctr::capi::pass_metrics(of.trainer.evaluate(hctr::SamplesView{samples, views}), metric, user);
  });
}

hctr_status hctr_trainer_read_state(hctr_trainer* trainer, hctr_trainer_state* state) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(state, "hctr_trainer_read_state(): the state");
    *state = hctr::capi::state_of(trainer_at(trainer).trainer.state());
  });
}

hctr_status hctr_trainer_tensor(hctr_trainer* trainer, size_t index, hctr_tensor* tensor, size_t* count) {
  return hctr::capi::call([&] {
    const hctr_trainer& of = trainer_at(trainer);
    if (count) *count = of.inputs.size();
    hctr::capi::expect_given(tensor, "hctr_trainer_tensor(): the tensor");
    if (index >= of.inputs.size())
      throw hctr::Error(hctr::Kind::usage, hctr::cat("input ", index, " of a trainer with ", of.inputs.size()));
    const hctr::ModelTensor& found = of.inputs[index];
    *tensor = {sizeof *tensor, static_cast<int32_t>(found.role), found.name.c_str(), hctr::capi::columns_of(found)};
  });
}

hctr_status hctr_trainer_set_learning_rate(hctr_trainer* trainer, double rate) {
  return hctr::capi::call(
      [&] { trainer_at(trainer).trainer.set_learning_rate(rate < 0 ? std::nullopt : std::optional<double>(rate)); });
}

hctr_status hctr_trainer_set_source(hctr_trainer* trainer, const char* source) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(source, "hctr_trainer_set_source(): the source");
    trainer_at(trainer).trainer.set_source(source);
  });
}

hctr_status hctr_trainer_set_evaluation_source(hctr_trainer* trainer, const char* source) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(source, "hctr_trainer_set_evaluation_source(): the source");
    trainer_at(trainer).trainer.set_evaluation_source(source);
  });
}

hctr_status hctr_trainer_freeze(hctr_trainer* trainer, const char* const* names, size_t count) {
  return hctr::capi::call([&] { trainer_at(trainer).trainer.freeze(hctr::capi::names_of(names, count)); });
}

hctr_status hctr_trainer_unfreeze(hctr_trainer* trainer, const char* const* names, size_t count) {
  return hctr::capi::call([&] { trainer_at(trainer).trainer.unfreeze(hctr::capi::names_of(names, count)); });
}

hctr_status hctr_trainer_save(hctr_trainer* trainer, const char* prefix, hctr_file file, void* user) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(prefix, "hctr_trainer_save(): the prefix");
    for (const auto& path : trainer_at(trainer).trainer.save(prefix))
      if (file) file(user, path.c_str());
  });
}

hctr_status hctr_trainer_checkpoint(hctr_trainer* trainer, const char* folder, hctr_file file, void* user) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(folder, "hctr_trainer_checkpoint(): the folder");
    const auto path = trainer_at(trainer).trainer.checkpoint(folder);
    if (file) file(user, path.c_str());
  });
}

hctr_status hctr_trainer_finish(hctr_trainer* trainer) {
  return hctr::capi::call([&] { trainer_at(trainer).trainer.finish(); });
}
