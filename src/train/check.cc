// --check: checks a config without training.
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "core/base/files.h"
#include "formats/catalog/format_table.h"
#include "formats/io/source_files.h"
#include "hctr/solver.h"
#include "infer/load_config.h"
#include "score/evaluation_data.h"
#include "train/check_report.h"
#include "train/known_gpus.h"
#include "train/placement_plan.h"
#include "train/training_columns.h"

namespace hctr {
namespace {

/// The nearest existing parent folder of `file`.
fs::path existing_folder(fs::path folder) {
  while (!folder.empty() && !fs::exists(folder)) folder = folder.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

void check_folder(const std::string& what, const fs::path& folder, std::vector<std::string>& unwritable) {
  const fs::path there = existing_folder(folder);
  if (!fs::is_directory(there))
    unwritable.push_back(cat(what, ": '", there.string(), "' is a file; expected a folder"));
  else if (::access(there.c_str(), W_OK | X_OK) != 0)
    unwritable.push_back(cat(what, ": the folder '", there.string(), "' cannot be written to"));
}

std::vector<std::string> unwritable_folders(const SolverSection& solver) {
  std::vector<std::string> unwritable;
  check_folder("runs/, which contains the run folder if --run-dir is not given", "runs", unwritable);
  if (!solver.snapshot_prefix.empty())
    check_folder("/solver/snapshot_prefix", fs::path(solver.snapshot_prefix + "x").parent_path(), unwritable);
  if (solver.checkpoint.given) check_folder("/solver/checkpoint/folder", solver.checkpoint.folder, unwritable);
  if (!solver.export_predictions_prefix.empty())
    check_folder("/solver/export_predictions_prefix", fs::path(solver.export_predictions_prefix + "x").parent_path(),
                 unwritable);
  return unwritable;
}

void note_absent_files(const Config& config, const std::string& name,
                       const std::function<void(std::string_view)>& note) {
  const auto mention = [&](const std::string& file, const std::string& pointer) {
    if (!file.empty() && !source_exists(file))
      note(cat("note: ", name, " ", pointer, ": there is no file '", file, "' here yet"));
  };
  if (format_type(config.data.format).files) {  // other source formats are not files
    mention(config.data.source, "/layers/0/source");
    mention(config.data.eval_source, "/layers/0/eval_source");
  }
  mention(config.solver.dense_model_file, "/solver/dense_model_file");
  for (const std::string& file : config.solver.sparse_model_file) mention(file, "/solver/sparse_model_file");
  mention(config.solver.dense_opt_states_file, "/solver/dense_opt_states_file");
  for (const std::string& file : config.solver.sparse_opt_states_file) mention(file, "/solver/sparse_opt_states_file");
  for (const Pretrained& from : config.solver.pretrained)
    for (const std::string& file : {from.file, from.keys, from.vectors}) mention(file, "/solver/pretrained");
  mention(config.solver.placement_file, "/solver/placement_file");
}

/// The key counts of slots, grouped by sparse input. Empty if the number of slots differs from the config's.
std::vector<std::vector<CheckOptions::Slot>> by_input(const Config& config,
                                                      const std::vector<CheckOptions::Slot>& slots) {
  std::vector<std::vector<CheckOptions::Slot>> inputs;
  size_t next = 0;
  for (const SparseInput& input : config.data.sparse) {
    auto& own = inputs.emplace_back();
    for (int64_t s = 0; s < input.slot_num && next < slots.size(); ++s) own.push_back(slots[next++]);
    if (static_cast<int64_t>(own.size()) != input.slot_num) return {};
  }
  return inputs;
}

/// Finds the GPU to check against: the GPU that the options name, or this machine's.
void find_gpu(const CheckOptions& options, const Config& config, CheckReport& report) {
  const DType products = config.solver.mixed_precision.activations;
  if (!options.gpu_name.empty()) {
    const auto known = find_known_gpu(options.gpu_name);
    if (!known) {
      std::string names;
      for (const std::string& name : gpu_names()) names += (names.empty() ? "" : ", ") + name;
      throw Error(Kind::usage, cat("--gpu-name ", options.gpu_name, ": unknown GPU; expected ", names));
    }
    report.gpu = known->name;
    report.gpu_bytes = known->memory_gib * (1 << 30);
    report.ceilings = expected_ceilings(*known, products, config.solver.enable_tf32_compute);
  } else if (options.device != DeviceChoice::cpu && find_gpus().count > 0) {
    const Device device{DeviceKind::cuda, 0};
    Runtime runtime(device, {.tf32 = config.solver.enable_tf32_compute});
    report.gpu = describe(device);
    report.gpu_bytes = static_cast<double>(free_memory(device) + used_memory(device));
    report.measured = true;
    report.ceilings = measure_ceilings(runtime, products);
  }
  if (options.gpu_memory) report.gpu_bytes = *options.gpu_memory * (1 << 30);
}

}  // namespace

std::string check(const CheckOptions& options, const std::function<void(std::string_view)>& note) {
  const Log log([&](Level level, std::string_view line) {
    note(level == Level::warning ? cat("warning: ", line) : std::string(line));
  });
  std::vector<std::string> changes = options.changes;
  if (options.gpus) {
    std::string list;
    for (int64_t gpu = 0; gpu < *options.gpus; ++gpu) list += cat(gpu == 0 ? "" : ",", gpu);
    changes.push_back(cat("solver.gpu=[", list, "]"));
  }
  Config config = load_config(options.config, options.strict, log,
                              {.changes = changes, .environment = options.surroundings.environment});
  if (config.solver.gpu.all) {
    const int gpus = options.device == DeviceChoice::cpu ? 1 : std::max(1, find_gpus().count);
    config.solver.gpu = {.per_process = {std::vector<int64_t>(static_cast<size_t>(gpus))}};
    std::iota(config.solver.gpu.per_process[0].begin(), config.solver.gpu.per_process[0].end(), 0);
    note(cat("note: /solver/gpu is \"all\", so this check is for ", gpus, gpus == 1 ? " GPU" : " GPUs",
             "; --gpus sets another number"));
  }
  Problems problems;
  const Graph graph = wire(config, config.solver.batchsize, problems);
  CheckReport report{.config = options.config.string(), .layers = {}, .plan = {}};
  problems.throw_if_any(report.config);
  note_absent_files(config, report.config, note);
  note_shared_files(config, log);
  report.layers = layer_table(config, graph);
  find_gpu(options, config, report);
  report.plan = plan_outlook(config, report.gpu_bytes.value_or(0));

  const int64_t ranks = config.solver.gpu.count();
  report.samples = samples_of_rank(config.solver.batchsize, ranks);
  report.processes = config.solver.gpu.per_process.size();
  const std::vector<std::vector<CheckOptions::Slot>> counted = by_input(config, options.slots);
  report.keys_counted = !counted.empty();
  std::vector<std::vector<int64_t>> distinct;
  std::vector<std::vector<SlotKeys>> keys = assumed_keys(config, report.samples);
  for (size_t i = 0; i < counted.size(); ++i) {
    auto& of_input = distinct.emplace_back();
    for (size_t s = 0; s < counted[i].size(); ++s) {
      const CheckOptions::Slot& slot = counted[i][s];
      of_input.push_back(slot.distinct);
      keys[i][s] = {slot.keys, expected_distinct(slot.keys * static_cast<double>(report.samples), slot.distinct)};
    }
  }
  report.memory = memory_bill(config, ranks, distinct, report.gpu_bytes.value_or(0));
  if (!report.gpu.empty()) report.step = forecast_step(config, report.samples, report.ceilings, keys);
  if (const auto known = find_known_gpu(report.gpu); report.step && ranks > 1 && known)
    report.exchange = forecast_exchange(config, ranks, *known, *report.step, graph.parameters, keys);
  report.unwritable = unwritable_folders(config.solver);
  return options.json ? to_json(report).text(2) + "\n" : text_of(report);
}

}  // namespace hctr
