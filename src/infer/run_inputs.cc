#include "infer/run_inputs.h"

#include <string>

#include "config/config_file.h"
#include "core/base/input_files.h"
#include "formats/catalog/bad_records_file.h"
#include "formats/catalog/section_files.h"

namespace hctr {

std::vector<fs::path> input_files(const fs::path& config_file, const Config& config, const Environment& environment) {
  const SolverSection& solver = config.solver;
  std::vector<fs::path> files = files_of_section(config.data);
  const std::vector<fs::path> of_config = files_of_config(config_file, environment);
  files.insert(files.end(), of_config.begin(), of_config.end());
  files.insert(files.end(), {solver.dense_model_file, solver.dense_opt_states_file, solver.placement_file});
  files.insert(files.end(), solver.sparse_model_file.begin(), solver.sparse_model_file.end());
  files.insert(files.end(), solver.sparse_opt_states_file.begin(), solver.sparse_opt_states_file.end());
  for (const Pretrained& from : solver.pretrained) files.insert(files.end(), {from.file, from.keys, from.vectors});
  for (const EmbeddingEntry& embedding : config.embeddings) files.emplace_back(embedding.section.hparam.frequent_keys);
  std::erase(files, fs::path());
  return files;
}

void expect_outputs_of_config(const fs::path& config_file, const Config& config, const Environment& environment) {
  const auto inputs = [&] { return input_files(config_file, config, environment); };
  if (const auto* bad = config.data.options.find<BadRecordsSection>())
    expect_no_input(bad->path, "\"bad_records_file\"", inputs, Kind::config);
  expect_no_input(config.solver.algorithm_file.value_or(""), "\"algorithm_file\"", inputs, Kind::config);
  if (const fs::path prefix = config.solver.export_predictions_prefix; !prefix.empty())
    expect_no_input_in(
        prefix.has_parent_path() ? prefix.parent_path() : ".", "the file of \"export_predictions_prefix\"", inputs(),
        [start = prefix.filename().string()](const std::string& name) {
          const size_t number = name.find_last_not_of("0123456789") + 1;
          const std::string stem = name.substr(0, number);
          return name.starts_with(start) && number < name.size() &&
                 (stem.ends_with("_prediction_") || stem.ends_with("_label_"));
        },
        Kind::config);
}

void expect_metrics_file(const fs::path& metrics_file, const fs::path& config_file, const Config& config,
                         const Environment& environment) {
  expect_no_input(metrics_file, "--metrics-file", [&] { return input_files(config_file, config, environment); });
}

}  // namespace hctr
