#include "hctr/trainer.h"

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "capi/call.h"
#include "capi/model_inputs.h"
#include "capi/use_results.h"
#include "core/base/expect.h"

struct hctr_trainer {
  explicit hctr_trainer(hctr::TrainerOptions options)
      : trainer((options.stop = &stop, options)), inputs(trainer.inputs()) {}
  std::atomic<int> stop = 0;
  hctr::Trainer trainer;
  hctr::TrainerState state;  // the state that was last returned to the caller
  std::vector<hctr_metric_value> metrics;
  std::vector<hctr::ModelTensor> inputs;
};

namespace hctr::capi {
namespace {

TrainerOptions trainer_options(const hctr_trainer_options* given) {
  const hctr_trainer_options from = read_struct(given, "hctr_trainer_options");
  TrainerOptions to;
  if (!from.config_text) expect_given(from.config, "hctr_trainer_options: config_text is NULL, and config");
  if (from.config) to.config = from.config;
  if (from.config_text) to.config_text = from.config_text;
  to.run_folder = from.run_folder != nullptr;
  if (from.run_folder) to.run_dir = from.run_folder;
  if (from.resume) to.resume = from.resume;
  set_job(from, "hctr_trainer_options", to);
  return to;
}

hctr_trainer& trainer_at(hctr_trainer* trainer) {
  expect_given(trainer, "the hctr_trainer");
  return *trainer;
}

std::vector<hctr_metric_value> values_of(const std::map<std::string, double>& metrics) {
  std::vector<hctr_metric_value> values;
  for (const auto& [name, value] : metrics) values.push_back({name.c_str(), value});
  return values;
}

hctr_trainer_state state_of(const TrainerState& from, const std::vector<hctr_metric_value>& metrics) {
  return {.size = sizeof(hctr_trainer_state),
          .iteration = from.iteration,
          .samples = from.samples,
          .loss = from.loss,
          .mean_loss = from.mean_loss,
          .learning_rate = from.learning_rate,
          .samples_per_second = from.samples_per_second,
          .seconds = from.seconds,
          .evaluated_at = from.evaluated_at,
          .passes = from.passes,
          .epoch = from.epoch.value_or(std::numeric_limits<double>::quiet_NaN()),
          .metrics = metrics.data(),
          .metric_count = metrics.size()};
}

Trainer::Callback callback_of(hctr_trainer_callback callback, void* user) {
  if (!callback) return {};
  return [callback, user](const TrainerState& at) {
    const std::vector<hctr_metric_value> metrics = values_of(at.metrics);
    const hctr_trainer_state state = state_of(at, metrics);
    return callback(user, &state) == 0;
  };
}

/// Returns the trainer for a training call, and clears the stop request of earlier calls.
Trainer& begin_training(hctr_trainer* trainer) {
  hctr_trainer& of = *(expect_given(trainer, "the hctr_trainer"), trainer);
  of.stop = 0;
  return of.trainer;
}

FitOptions fit_options(const hctr_fit_options& from) {
  const auto given = [](int64_t value) { return value < 0 ? std::nullopt : std::optional(value); };
  return {.iteration = given(from.iteration),
          .passes = given(from.passes),
          .display = given(from.display),
          .eval_interval = given(from.eval_interval),
          .snapshot = given(from.snapshot)};
}

std::map<std::string, std::string> files_by_name(const char* const* names, const char* const* files, size_t count) {
  std::map<std::string, std::string> all;
  if (count > 0) expect_given(names, "hctr_weight_files: names of tables");
  if (count > 0) expect_given(files, "hctr_weight_files: files of tables");
  for (size_t i = 0; i < count; ++i) all[names[i]] = files[i];
  return all;
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

std::vector<std::string> names_of(const char* const* names, size_t count) {
  if (count > 0) expect_given(names, "the names of layers and tables");
  return {names, names + count};
}

}  // namespace
}  // namespace hctr::capi

using hctr::capi::trainer_at;

hctr_status hctr_trainer_create(const hctr_trainer_options* options, hctr_trainer** trainer) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(trainer, "hctr_trainer_create(): the pointer to the handle");
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
    hctr::capi::note_end(hctr::capi::begin_training(trainer).fit(options), ended);
  });
}

hctr_status hctr_trainer_fit_until(hctr_trainer* trainer, const hctr_fit_options* until, int32_t* ended) {
  return hctr::capi::call([&] {
    const hctr::FitOptions options = hctr::capi::fit_options(hctr::capi::read_struct(until, "hctr_fit_options"));
    hctr::capi::note_end(hctr::capi::begin_training(trainer).fit(options), ended);
  });
}

void hctr_trainer_stop(hctr_trainer* trainer) {
  constexpr int kInterrupt = 2;  // SIGINT's number
  if (trainer) trainer->stop = kInterrupt;
}

hctr_status hctr_trainer_step(hctr_trainer* trainer, int64_t iterations, int32_t* ended) {
  return hctr::capi::call([&] { hctr::capi::note_end(hctr::capi::begin_training(trainer).step(iterations), ended); });
}

hctr_status hctr_trainer_step_samples(hctr_trainer* trainer, int64_t samples, const hctr_model_input* inputs,
                                      size_t input_count, int32_t* ended) {
  return hctr::capi::call([&] {
    hctr_trainer& of = trainer_at(trainer);
    const auto views = hctr::capi::inputs_of(of, samples, inputs, input_count);
    of.stop = 0;
    hctr::capi::note_end(of.trainer.step(hctr::SamplesView{samples, views}), ended);
  });
}

hctr_status hctr_trainer_evaluate(hctr_trainer* trainer, hctr_metric metric, void* user) {
  return hctr::capi::call(
      [&] { hctr::capi::pass_metrics(hctr::capi::begin_training(trainer).evaluate(), metric, user); });
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
    hctr_trainer& of = trainer_at(trainer);
    of.state = of.trainer.state();
    of.metrics = hctr::capi::values_of(of.state.metrics);
    hctr::capi::write_struct(hctr::capi::state_of(of.state, of.metrics), state, "hctr_trainer_state");
  });
}

hctr_status hctr_trainer_tensor(hctr_trainer* trainer, size_t index, hctr_tensor* tensor, size_t* count) {
  return hctr::capi::call([&] {
    const hctr_trainer& of = trainer_at(trainer);
    if (count) *count = of.inputs.size();
    hctr::capi::expect_given(tensor, "hctr_trainer_tensor(): the tensor");
    if (index >= of.inputs.size())
      throw hctr::Error(hctr::Kind::usage,
                        hctr::cat("there is no input ", index, ": the trainer has ", of.inputs.size(), " inputs"));
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

hctr_status hctr_trainer_load(hctr_trainer* trainer, const hctr_weight_files* files) {
  return hctr::capi::call([&] {
    const hctr_weight_files from = hctr::capi::read_struct(files, "hctr_weight_files");
    hctr::WeightFiles to;
    if (from.dense) to.dense = from.dense;
    if (from.dense_states) to.dense_states = from.dense_states;
    to.tables = hctr::capi::files_by_name(from.table_names, from.table_files, from.table_count);
    to.table_states = hctr::capi::files_by_name(from.table_state_names, from.table_state_files, from.table_state_count);
    trainer_at(trainer).trainer.load(to);
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
