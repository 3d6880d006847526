#include "serve/model_version.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/processor.h"
#include "infer/saved_model.h"

namespace hctr::serve {
namespace {

/// The prefix of model files in a folder that is not a run folder: "folder/final_" for "folder/final__dense_60.model".
std::string model_in_folder(const fs::path& folder) {
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const size_t dense = name.rfind("_dense_");
    if (dense == name.npos || !name.ends_with(".model")) continue;
    const std::string prefix = (folder / name.substr(0, dense)).string();
    if (!found.empty() && found != prefix)
      throw Error(Kind::config,
                  cat("folder '", folder.string(), "' holds two models, '", found, "' and '", prefix, "'"));
    found = prefix;
  }
  return found;
}

/// `path`: a run, a checkpoint or a prefix; or a folder with model files and an optional config.json.
LoadOptions load_options(const std::string& path, const ServeOptions& options, int threads,
                         std::shared_ptr<const StoreView> tables, const Log& log) {
  LoadOptions load{.model = path,
                   .device = options.device,
                   .threads = threads,
                   .note = [log](std::string_view line) { log.info(line); },
                   .surroundings = options.surroundings,
                   .tables = std::move(tables)};
  if (!fs::is_directory(path)) return load;
  try {
    (void)saved_config(path, options.surroundings.environment);
  } catch (const Error&) {
    if (const std::string prefix = model_in_folder(path); !prefix.empty()) load.model = prefix;
    if (fs::exists(fs::path(path) / "config.json")) load.config = fs::path(path) / "config.json";
  }
  return load;
}

bool rows_are_independent(const Config& config) {
  return std::ranges::none_of(config.layers,
                              [](const LayerEntry& layer) { return layer.type->name() == "PReLU_Dice"; });
}

int instances_of(const ModelConfig& config, const ServeOptions& options) {
  if (config.instances) return static_cast<int>(*config.instances);
  return options.instances.value_or(std::clamp(usable_cores(), 1, 4));
}

int threads_of(const ServeOptions& options, int instances) {
  return options.threads.value_or(std::max(1, usable_cores() / instances));
}

/// `samples` samples with zeros as dense values and key 0 in each slot.
SampleArrays zeros(const ServedModel& model, int64_t samples) {
  SampleArrays arrays{.samples = samples};
  for (const ModelTensor& input : model.inputs()) {
    const auto values = static_cast<size_t>(samples * input.shape[1]);
    if (input.role == ModelTensor::Role::dense) {
      arrays.dense_dim = input.shape[1];
      arrays.dense_name = input.name;
      arrays.dense.assign(values, 0.0f);
    } else {
      SampleArrays::Keys keys{.name = input.name, .slots = input.shape[1]};
      keys.keys.assign(values, 0);
      for (size_t i = 0; i <= values; ++i) keys.offsets.push_back(static_cast<int64_t>(i));
      arrays.inputs.push_back(std::move(keys));
    }
  }
  return arrays;
}

}  // namespace

ModelVersion::ModelVersion(ModelConfig config, const std::string& path, const ServeOptions& options,
                           std::shared_ptr<const StoreView> tables)
    : config_(std::move(config)),
      reads_store_(tables != nullptr),
      model_(load_options(path, options, threads_of(options, instances_of(config_, options)), std::move(tables),
                          Log(options.surroundings.log))),
      reader_(model_.config(), model_.inputs()),
      outputs_(model_),
      unseen_(model_),
      instances_(instances_of(config_, options)),
      joins_requests_(rows_are_independent(model_.config())) {
  complete_model_config(config_, reader_, outputs_);
  config_.schedule.instances = instances_;
  warm_up();
  ScheduleOptions schedule = config_.schedule;
  if (!joins_requests_) {
    schedule.most_samples = 1;  // each request, even of several samples, is then a batch of its own
    Log(options.surroundings.log)
        .info("note: model '", config_.name, "' scores each request alone, because PReLU_Dice normalizes with the ",
              "samples of a batch");
  }
  schedule.in_caller = !reads_store_ && !model_.on_gpu();
  scheduler_ = std::make_unique<BatchScheduler>(model_, reader_, outputs_, statistics_, unseen_, schedule);
}

void ModelVersion::warm_up() {
  for (int64_t samples = 1; samples <= std::min<int64_t>(64, config_.schedule.most_samples); samples *= 2)
    (void)score_offline(zeros(model_, samples));
}

BatchResults ModelVersion::score_offline(const SampleArrays& samples) {
  return {model_, samples, WantedInternals(model_)};
}

void ModelVersion::submit(InferRequest request, Answer answer) {
  scheduler_->submit(std::move(request), std::move(answer));
}

}  // namespace hctr::serve
