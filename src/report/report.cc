// --report: reads the runs, scores samples with their models, and writes the page.
#include "hctr/report.h"

#include <set>

#include "core/base/build_info.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/input_files.h"
#include "core/base/wall_time.h"
#include "report/config_differences.h"
#include "report/page.h"
#include "report/run_data.h"

namespace hctr {
namespace {

/// Replaces names that several runs have, and empty names, by the paths of the runs.
void name_runs(std::vector<RunData>& runs) {
  std::multiset<std::string> names;
  for (const RunData& run : runs) names.insert(run.name);
  for (RunData& run : runs)
    if (names.count(run.name) > 1 || run.name.empty() || run.name == ".")
      run.name = run.folder.lexically_normal().string();
}

Json differences_json(const std::vector<RunData>& runs) {
  std::vector<Json> configs;
  for (const RunData& run : runs) configs.push_back(run.config);
  Json all(Json::Array{});
  for (const ConfigDifference& difference : config_differences(configs)) {
    Json values(Json::Array{});
    for (const std::string& value : difference.values) values.add(value);
    all.add(Json(Json::Array{difference.place, std::move(values)}));
  }
  return all;
}

/// The run folders, and the data that their configs name.
std::vector<fs::path> files_of_runs(const std::vector<RunData>& runs) {
  std::vector<fs::path> files;
  for (const RunData& run : runs) {
    files.push_back(run.folder);
    const Json* layers = run.config.find("layers");
    if (!layers || !layers->array() || layers->array()->empty()) continue;
    for (const char* field : {"source", "eval_source"})
      if (const Json* source = (*layers->array())[0].find(field); source && source->string())
        files.emplace_back(*source->string());
  }
  return files;
}

}  // namespace

RunReportSummary report_runs(const RunReportOptions& options) {
  if (options.runs.empty()) throw Error(Kind::usage, "--report needs the folder of a run");
  RunReportSummary summary;
  std::vector<RunData> runs;
  for (const fs::path& folder : options.runs) runs.push_back(read_run(folder, options.surroundings.environment));
  name_runs(runs);
  expect_no_input(options.out, "--out", [&] { return files_of_runs(runs); });
  create_parent_folder(options.out);
  AtomicFile file(options.out);  // opened first: an unwritable file is reported before the slow work
  for (RunData& run : runs)
    if (options.scores && !score_run(run, options)) {
      summary.interrupted = true;
      return summary;
    }
  Json all(Json::Array{});
  std::string title;
  for (const RunData& run : runs) {
    all.add(page_json(run));
    title += cat(title.empty() ? "" : ", ", run.name);
    for (const std::string& note : run.notes) summary.notes.push_back(cat(run.name, ": ", note));
  }
  file.write(page_html(title, Json(Json::Object{{"schema", 1},
                                                {"program", cat("huge_ctr ", version())},
                                                {"made", utc_text(unix_time())},
                                                {"runs", std::move(all)},
                                                {"differences", differences_json(runs)}})));
  file.commit();
  return summary;
}

}  // namespace hctr
