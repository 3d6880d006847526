#include "report/run_data.h"

#include "config/config_file.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "infer/run_ids.h"

namespace hctr {
namespace {

/// Reads a JSON file of the run. Returns null and adds a note if the file is missing or invalid.
template <class Read>
Json read_part(const RunData& run, const char* name, const char* without, std::vector<std::string>& notes,
               const Read& read) {
  const fs::path file = run.folder / name;
  if (!fs::exists(file)) {
    if (*without != '\0') notes.push_back(cat("no ", name, ": ", without));
    return {};
  }
  try {
    Json json = read(file);
    if (!json.object()) throw Error(Kind::data, cat("holds ", json.kind(), ", not an object"));
    return json;
  } catch (const Error& error) {
    notes.push_back(cat(name, " cannot be read: ", error.what()));
    return {};
  }
}

}  // namespace

RunData read_run(const fs::path& folder, const Environment& environment) {
  const fs::path metrics = folder / kMetrics;
  if (!fs::exists(metrics))
    throw Error(Kind::usage, cat("'", folder.string(), "' is not a run folder: the folder lacks ", kMetrics,
                                 fs::is_directory(folder) ? "" : " (there is no such folder)"));
  const fs::path whole = (folder / "").lexically_normal().parent_path();
  RunData run{.folder = folder, .name = whole.filename().string()};
  run.log = read_metrics_log(metrics);
  run.notes = run.log.notes;
  run.summary = read_part(run, kSummary, "the run is still running, was killed or ended with an error", run.notes,
                          Json::read_file);
  run.config = read_part(run, "config.json", "the config is unknown", run.notes,
                         [&](const fs::path& file) { return read_config_file(file, {}, nullptr, environment); });
  run.about = read_part(run, kAbout, "command line, host and versions are unknown", run.notes, Json::read_file);
  run.profile = read_part(run, "profile.json", "", run.notes, Json::read_file);
  if (run.log.lines > 0 && !run.log.training.contains("loss"))
    run.notes.emplace_back("no losses: the run was shorter than \"display\", the interval between progress lines");
  if (run.log.lines > 0 && run.log.metrics.empty() && run.log.not_numbers.empty())
    run.notes.emplace_back("no evaluation: \"eval_source\" or \"eval_interval\" is missing, or the run was too short");
  for (const auto& [name, count] : run.log.not_numbers)
    run.notes.push_back(
        cat("metric ", name, " had no value in ", count, count == 1 ? " evaluation" : " evaluations", ": ",
            run.log.undefined.contains(name) ? run.log.undefined.at(name)
                                             : "all labels were of one class, or a prediction was not a number"));
  return run;
}

bool score_run(RunData& run, const RunReportOptions& options) {
  if (run.config.is_null()) {
    run.notes.emplace_back("no scores: config.json, which describes the model, is missing");
    return true;
  }
  SampleOptions sample;
  static_cast<JobOptions&>(sample) = options;
  sample.config = run.folder / "config.json";
  sample.strict = false;
  sample.model = run.folder.string();
  sample.rows = options.rows;
  sample.importance = options.importance;
  try {
    run.scored = score_sample(sample);
    return !run.scored->interrupted;
  } catch (const Error& error) {
    if (error.kind() == Kind::bug || error.kind() == Kind::interrupted) throw;
    run.notes.push_back(cat("scores are omitted: ", error.what()));
  }
  return true;
}

std::string end_of(const RunData& run) {
  const Json* interrupted = run.summary.find("interrupted");
  const Json* metric = run.summary.find("stopped_at");
  if (metric && metric->string())
    return *metric->string() == "early_stopping" ? "stopped early" : cat("ended at ", *metric->string());
  if (!run.summary.is_null())
    return interrupted && interrupted->boolean() && *interrupted->boolean() ? "stopped on request" : "finished";
  return run.log.lines == 0 ? "nothing recorded" : "no end recorded";
}

}  // namespace hctr
