#include "train/training_columns.h"

#include "core/base/expect.h"
#include "formats/catalog/equal_texts.h"
#include "formats/catalog/first_matches.h"
#include "formats/catalog/first_rows.h"
#include "formats/model/model_manifest.h"
#include "infer/saved_model.h"
#include "score/batch_reading.h"

namespace hctr {
namespace {

KeyWidth key_width_of(const Config& config) { return reader_options(config, 1).key_width; }

}  // namespace

std::vector<ColumnStatistics> training_statistics(const Config& config, const ResumePoint* from, const Log& log) {
  const DataSection& data = config.data;
  if (!needs_statistics(data)) return {};
  if (from)
    return select_statistics(data, statistics_of(from->manifest), cat("the checkpoint '", from->folder.string(), "'"));
  const SolverSection& solver = config.solver;
  if (solver.dense_model_file.empty()) return learn_statistics(data, key_width_of(config), log);
  const auto manifest = manifest_of(solver.dense_model_file);
  // if only some layers are loaded, the initial model may have been trained with other columns
  const bool other_network = !solver.load_layers.empty();
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

}  // namespace hctr
