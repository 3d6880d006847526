#include "train/training_columns.h"

#include <set>

#include "core/base/expect.h"
#include "formats/catalog/equal_texts.h"
#include "formats/catalog/first_matches.h"
#include "formats/catalog/first_rows.h"
#include "formats/catalog/format_table.h"
#include "formats/model/model_manifest.h"
#include "train/trainer_parts.h"

namespace hctr {
namespace {

KeyWidth key_width_of(const Config& config) { return reader_options(config, 1).key_width; }

/// The files that are read for training and for evaluation; those that are not there yet are not known.
std::vector<std::string> shared_files(const DataSection& data) {
  if (data.eval_source.empty() || data.follow) return {};
  const FormatType& format = format_type(data.format);
  if (!format.files) return data.source == data.eval_source ? std::vector{data.source} : std::vector<std::string>();
  std::vector<std::string> shared;
  try {
    std::set<fs::path> trained;
    for (const fs::path& file : format.files(data.source, Log::silent())) trained.insert(fs::weakly_canonical(file));
    for (const fs::path& file : format.files(data.eval_source, Log::silent()))
      if (trained.contains(fs::weakly_canonical(file))) shared.push_back(file.string());
  } catch (const Error&) {
    return {};  // whoever reads them says why
  }
  return shared;
}

}  // namespace

std::vector<ColumnStatistics> training_statistics(const Config& config, const ResumePoint* from, const Log& log) {
  const DataSection& data = config.data;
  if (!needs_statistics(data)) return {};
  if (from)
    return select_statistics(data, statistics_of(from->manifest), cat("the checkpoint '", from->folder.string(), "'"));
  const SolverSection& solver = config.solver;
  if (solver.dense_model_file.empty()) return learn_statistics(data, key_width_of(config), log);
  const auto manifest = manifest_of(solver.dense_model_file);
  const bool other_network = !solver.load_layers.empty();  // which may have had other columns
  if (other_network && (!manifest || manifest->statistics.empty()))
    return learn_statistics(data, key_width_of(config), log);
  return select_statistics(data, manifest ? manifest->statistics : std::vector<ColumnStatistics>(),
                           cat("the model '", solver.dense_model_file, "'"));
}

void broadcast_statistics(Communicator& comm, const std::vector<ColumnStatistics>& of_rank_0, Config& config) {
  if (!needs_statistics(config.data)) return;
  const std::string text = comm.broadcast(comm.rank() == 0 ? to_json(of_rank_0).text() : "", 0);
  config.data.statistics = column_statistics(Json::parse(text, "the statistics of rank 0"));
}

void check_training_columns(const Config& config, bool allow_unmatched, const Log& log) {
  if (config.data.follow && config.data.first_files.empty()) return;
  const Source source = training_source(config.data);
  check_positives(config.data, source, key_width_of(config), allow_unmatched, log);
  check_vocabularies(config.data, source, key_width_of(config), allow_unmatched, log);
  for (const std::string& note : notes_on_equal_texts(config.data, source, key_width_of(config)))
    log.info("note: ", note, ".");
}

void note_shared_files(const Config& config, const Log& log) {
  const std::vector<std::string> shared = shared_files(config.data);
  if (shared.empty()) return;
  log.info("note: '", shared.front(), "'", shared.size() == 1 ? " is" : cat(" and ", shared.size() - 1, " more are"),
           " read for training and for evaluation: metrics of samples that the model has learned from say little of "
           "other samples.");
}

void check_evaluation_labels(const Config& config, bool allow_unmatched, const Log& log) {
  if (config.data.eval_source.empty()) return;
  check_positives(config.data, evaluation_source(config.data), key_width_of(config), allow_unmatched, log);
}

}  // namespace hctr
