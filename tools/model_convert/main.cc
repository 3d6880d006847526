// model_convert: converts a saved model between the table layouts v2 and v3.
#include <algorithm>
#include <optional>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/input_files.h"
#include "core/base/progress.h"
#include "formats/model/access_stats_file.h"
#include "formats/model/model_manifest.h"
#include "formats/model/sparse_reader.h"
#include "formats/model/sparse_writer.h"
#include "hctr/formats.h"
#include "infer/load_config.h"
#include "infer/run_inputs.h"
#include "net/model/layer_state.h"
#include "net/model/model_files.h"
#include "net/model/weights.h"
#include "program/command_line.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  model_convert config.json out/_dense_3908.model --to v3 --out later/
  model_convert starts_from_a_folder.json --to v2 --out old/wdl)";

struct Arguments {
  std::string config, model, to, out;
  std::optional<int> key_bytes;
};

/// Returns "60" for "out/_dense_60.model"; none for other names.
std::optional<int64_t> iteration_in(const std::string& dense) {
  const std::string stem = fs::path(dense).stem().string(), digits = stem.substr(stem.rfind('_') + 1);
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos) return {};
  return std::stoll(digits);
}

/// Sets all model files in the config, derived from the dense file's name.
void name_files(const std::string& dense, Config& config) {
  const auto iteration = iteration_in(dense);
  const std::string ending = iteration ? cat("_dense_", *iteration, ".model") : "";
  if (!iteration || !dense.ends_with(ending))
    throw Error(Kind::usage, cat("'", dense,
                                 "' is not named \"<prefix>_dense_<iteration>.model\" like a dense model file, so "
                                 "the names of tables are unknown; omit the file to convert the files that the "
                                 "config names"));
  const std::string prefix = dense.substr(0, dense.size() - ending.size());
  SolverSection& solver = config.solver;
  solver.dense_model_file = dense;
  solver.sparse_model_file.clear();
  solver.sparse_opt_states_file.clear();
  const std::string dense_states = formats::dense_opt_states_name(prefix, *iteration);
  solver.dense_opt_states_file = fs::exists(dense_states) ? dense_states : "";
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const auto number = static_cast<int64_t>(e);
    solver.sparse_model_file.push_back(formats::sparse_model_name(prefix, number, *iteration));
    const std::string states = formats::sparse_opt_states_name(prefix, number, *iteration);
    if (fs::exists(states)) solver.sparse_opt_states_file.push_back(states);
  }
}

/// A table's file to write, or its folder.
struct TableFile {
  fs::path path;
  ModelFormat format;
  int key_bytes;
};

/// Converts the rows of a table in their order, so the files of optimizer states remain valid. Returns the number of
/// rows.
int64_t convert_table(const Config& config, size_t which, size_t input, FileSet& set, const TableFile& to,
                      const Log& log) {
  const EmbeddingSection& section = config.embeddings[which].section;
  const auto& stated = config.solver.input_key_type;
  const SparseFileShape shape{section.identity_by_slot(), section.dim, config.data.sparse[input].slot_num,
                              !stated                   ? 0
                              : *stated == KeyType::i32 ? 4
                                                        : 8};
  TableSpec spec;
  spec.name = section.top();
  spec.dim = section.dim;
  spec.identity_by_slot = section.identity_by_slot();
  SparseWriter writer(set, to.path, spec, to.format, to.key_bytes);
  std::optional<Progress> progress;
  int64_t done = 0;
  const int64_t rows = read_sparse(
      config.solver.sparse_model_file[which], shape,
      [&](const SparseRows& part) {
        if (!progress) progress.emplace(show_progress_line, cat("converting '", spec.name, "'"), "rows", part.of);
        const std::vector<int32_t> slots(part.slots.begin(), part.slots.end());
        writer.add({part.keys, slots, part.vectors, {}, {}});
        progress->update(done += static_cast<int64_t>(part.keys.size()));
      },
      log);
  if (progress) progress->finish();
  writer.finish();
  return rows;
}

/// Checks the names of the new files. Errors: Error(usage) if a new file would replace an input file.
void expect_new_names(const Arguments& given, const Config& config, const fs::path& manifest, int64_t iteration) {
  const std::vector<fs::path> read = input_files(given.config, config, system_environment());
  std::vector<fs::path> written = {manifest, formats::dense_model_name(given.out, iteration),
                                   formats::dense_opt_states_name(given.out, iteration)};
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    written.emplace_back(formats::sparse_model_name(given.out, static_cast<int64_t>(e), iteration));
    written.emplace_back(formats::sparse_opt_states_name(given.out, static_cast<int64_t>(e), iteration));
  }
  for (const fs::path& file : written) expect_no_input(file, "--out: its file", read);
}

void convert(const Arguments& given) {
  const Log log = log_to_stderr();
  Config config = load_config(given.config, false, log, {.environment = system_environment()});
  SolverSection& solver = config.solver;
  if (!given.model.empty()) name_files(given.model, config);
  if (solver.dense_model_file.empty() || solver.sparse_model_file.size() != config.embeddings.size())
    throw Error(Kind::usage, cat("'", given.config,
                                 "' does not name a complete model in \"dense_model_file\" and "
                                 "\"sparse_model_file\"; pass a dense file as the second argument"));
  check_model_files(config, log);
  const std::optional<ModelManifest> of_source = manifest_of(solver.dense_model_file);
  ModelManifest manifest = of_source.value_or(ModelManifest{.config = config.effective});
  if (!of_source) manifest.iteration = manifest.updates = iteration_in(solver.dense_model_file).value_or(0);
  manifest.prefix = given.out;
  manifest.tables.clear();
  const int64_t iteration = manifest.iteration;
  const ModelFormat format = given.to == "v3" ? ModelFormat::v3 : ModelFormat::v2;
  const int key_bytes = given.key_bytes ? *given.key_bytes : solver.input_key_type == KeyType::i64 ? 8 : 4;
  Problems problems;
  const Graph graph = wire(config, solver.batchsize, problems);

  const fs::path new_manifest = formats::model_manifest_name(given.out, std::to_string(iteration));
  expect_new_names(given, config, new_manifest, iteration);
  FileSet set;
  AtomicFile& to_manifest = set.add(new_manifest);
  const fs::path dense = formats::dense_model_name(given.out, iteration);
  set.copy(solver.dense_model_file, dense);
  for (const auto& belonging : {&Weights::layout_path, &LayerState::path_for})
    if (fs::exists(belonging(solver.dense_model_file))) set.copy(belonging(solver.dense_model_file), belonging(dense));
  if (!solver.dense_opt_states_file.empty())
    set.copy(solver.dense_opt_states_file, formats::dense_opt_states_name(given.out, iteration));
  int64_t rows = 0;
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const EmbeddingSection& section = config.embeddings[e].section;
    manifest.tables.push_back({section.top(), section.dim, section.identity_by_slot()});
    const auto number = static_cast<int64_t>(e);
    const fs::path to = formats::sparse_model_name(given.out, number, iteration);
    rows += in_context(
        [&] { return cat("converting table '", section.top(), "'"); },
        [&] { return convert_table(config, e, graph.embedding_inputs[e], set, {to, format, key_bytes}, log); });
    if (const fs::path stats = access_stats_path(solver.sparse_model_file[e]); fs::exists(stats))
      set.copy(stats, access_stats_path(to));
    if (!solver.sparse_opt_states_file.empty())
      set.copy(solver.sparse_opt_states_file[e], formats::sparse_opt_states_name(given.out, number, iteration));
  }
  write_model_manifest(set, to_manifest, manifest);
  set.commit();
  print_formatted("%s and %zu tables of %lld rows are in format %s.\n", dense.c_str(), config.embeddings.size(),
                  static_cast<long long>(rows), given.to.c_str());
}

int main_of(int argc, char** argv) {
  Arguments given;
  CommandLine app("model_convert",
                  "Converts a saved model to another layout of tables: v2, one file per table, for HugeCTR 2.x and "
                  "3.0; v3, one folder per table, for later versions. Also copies dense weights, optimizer states "
                  "and all other files of the model, and writes a manifest.",
                  kExamples);
  app.add_option("config", given.config, "a config of the model").required();
  app.add_option("model", given.model,
                 "the dense file of the model, <prefix>_dense_<iteration>.model, next to its tables; default: the "
                 "model files that the config names");
  app.add_option("--to", given.to, "the layout to write").one_of({"v2", "v3"}).required();
  app.add_option("--out", given.out, "prefix of the new files").required();
  app.add_option("--key-bytes", given.key_bytes,
                 "bytes of a key in v2: 4 or 8; default: input_key_type of the config, else 4, as HugeCTR assumes")
      .one_of({4, 8});
  return run_tool(app, argc, argv, [&] { convert(given); });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
