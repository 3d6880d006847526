// --export: converts a saved model to files for other programs.
#include <algorithm>
#include <chrono>

#include "export/array_files.h"
#include "export/export_files.h"
#include "export/onnx_model.h"
#include "score/scorer.h"
#include "use/model_use.h"
#include "use/scored_inputs.h"

namespace hctr {
namespace {

void expect_new_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error))
    throw Error(Kind::usage, cat("--out '", folder.string(), "' is a file: name a new or empty folder"));
  if (!fs::is_empty(folder, error))
    throw Error(Kind::usage, cat("--out '", folder.string(),
                                 "': the folder is not empty: name a new or empty "
                                 "folder"));
}

/// Prepares the config for an export: one rank, and f32 activations like the exported files.
void prepare_export(const ExportOptions& options, Config& config) {
  if (options.rows > 0) choose_data(options, config);
  std::vector<int64_t> first = {0};
  if (const auto& lists = config.solver.gpu.per_process; !lists.empty() && !lists[0].empty()) first = {lists[0][0]};
  config.solver.gpu.per_process = {first};
  config.solver.mixed_precision = {};
}

void warn_of_shared_rows(const ModelOnRank& on) {
  for (const std::string& table : on.replica().tables_with_shared_row())
    on.log.warning("table '", table,
                   "': keys without a row share a trained row in this checkpoint, which files cannot contain: such "
                   "keys get zero vectors in the export");
}

/// Exports on the single rank. Returns false if a stop was requested.
bool export_here(ModelOnRank& on, const ExportOptions& options, ExportSummary& summary) {
  if (on.comm().size() > 1) throw Error(Kind::usage, "--export runs as one process: start it without mpirun");
  warn_of_shared_rows(on);
  const ModelArrays arrays = model_arrays(on.replica(), on.config(), on.runtime().compute_stream());
  FileSet set;
  write_export(set,
               {.format = options.format,
                .folder = options.out,
                .most_inline = options.most_inline_bytes,
                .model = on.saved().name,
                .iteration = on.saved().iteration},
               on.config(), arrays);
  if (options.rows > 0) {
    const std::optional<ScoredInputs> rows = score_inputs(on, options.rows, no_key_of(arrays), options.stop);
    if (!rows) return false;
    write_npz(set, options.out / "rows.npz", rows->arrays);
    summary.rows = rows->rows;
    summary.skipped_records = rows->skipped_records;
  }
  set.commit();
  for (const AtomicFile& file : set.files()) {
    summary.files.push_back(file.path());
    summary.bytes += static_cast<int64_t>(fs::file_size(file.path()));
  }
  return true;
}

}  // namespace

ExportSummary export_model(const ExportOptions& given) {
  expect_new_folder(given.out);
  ExportOptions options = given;
  // an export computes little, so the CPU suffices
  if (options.device == DeviceChoice::automatic) options.device = DeviceChoice::cpu;
  ExportSummary summary;
  const auto start = std::chrono::steady_clock::now();
  summary.rank = use_model(
      options, "exporting", [&](Config& config) { prepare_export(options, config); },
      [&](ModelOnRank& on) {
        summary.interrupted = !export_here(on, options, summary);
        describe_use(on, start, summary);
      });
  return summary;
}

}  // namespace hctr
