#include "train/run_folder.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/files.h"

namespace hctr {
namespace {

constexpr const char* kMetrics = "metrics.jsonl";

fs::path new_folder(const fs::path& config) {
  char time[32];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
  const std::string base = cat("runs/", config.stem().string(), "-", time);
  std::string name = base;
  for (int n = 2; fs::exists(name); ++n) name = cat(base, "-", n);
  return name;
}

/// Renames a folder that holds an earlier run.
void move_away(const fs::path& path, const std::vector<fs::path>& inputs, const Log& log) {
  const fs::path folder = (path / "").lexically_normal().parent_path();  // without a slash at the end
  fs::path to;
  for (int n = 1; to.empty() || fs::exists(to); ++n) to = cat(folder.string(), ".", n);
  const fs::path whole = fs::weakly_canonical(folder);
  for (const fs::path& input : inputs) {
    const fs::path file = fs::weakly_canonical(input);
    if (const auto [end, rest] = std::mismatch(whole.begin(), whole.end(), file.begin(), file.end());
        end == whole.end())
      throw Error(Kind::config, cat("'", input.string(), "' lies in the run folder '", folder.string(),
                                    "', which holds an earlier run and would be moved to '", to.string(),
                                    "': give another --run-dir"));
  }
  std::error_code error;
  fs::rename(folder, to, error);
  if (error)
    throw Error(Kind::io, cat("cannot move the run folder '", folder.string(), "' of an earlier run to '", to.string(),
                              "': ", error.message(), "; give another --run-dir"));
  log.info("The run folder '", folder.string(), "' held an earlier run: it is moved to '", to.string(), "'.");
}

Json numbers(const std::map<std::string, double>& values) {
  Json object(Json::Object{});
  for (const auto& [name, value] : values) object.set(name, value);
  return object;
}

Json counts(const std::map<std::string, std::map<std::string, int64_t>>& of_tables) {
  Json tables(Json::Object{});
  for (const auto& [name, values] : of_tables) {
    Json table(Json::Object{});
    for (const auto& [what, count] : values) table.set(what, count);
    tables.set(name, std::move(table));
  }
  return tables;
}

}  // namespace

RunFolder::RunFolder(const fs::path& wanted, const fs::path& config, const std::vector<fs::path>& inputs,
                     const Log& log)
    : path_(wanted.empty() ? new_folder(config) : wanted) {
  if (fs::exists(path_ / kMetrics)) move_away(path_, inputs, log);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw Error(Kind::io, cat("cannot create the run folder '", path_.string(), "': ", error.message()));
  metrics_.open(path_ / kMetrics, std::ios::trunc);
  if (!metrics_) throw Error(Kind::io, cat("cannot write '", (path_ / kMetrics).string(), "'"));
}

void RunFolder::add_metrics(const Json& line) {
  if (path_.empty()) return;
  metrics_ << line.text() << '\n' << std::flush;
  if (!metrics_) throw Error(Kind::io, cat("cannot write '", (path_ / kMetrics).string(), "'; is the disk full?"));
}

void RunFolder::write_config(const Json& effective) const {
  if (!path_.empty()) write_text(path_ / "config.json", effective.text(2) + "\n");
}

void RunFolder::write_plan(const std::string& json) const {
  if (!path_.empty()) write_text(path_ / "plan.json", json + "\n");
}

void RunFolder::write_summary(const TrainSummary& summary) const {
  if (path_.empty()) return;
  Json files(Json::Array{});
  for (const fs::path& file : summary.model_files) files.add(file.string());
  Json json(Json::Object{{"schema", kRunSchema},
                         {"device", summary.device},
                         {"iterations", summary.iterations},
                         {"samples", summary.samples},
                         {"seconds", summary.seconds},
                         {"samples_per_second", summary.samples_per_second},
                         {"final_loss", summary.final_loss},
                         {"metrics", numbers(summary.metrics)},
                         {"best_possible", numbers(summary.best_possible)},
                         {"memory_in_use", Json(Json::Array(summary.memory.begin(), summary.memory.end()))},
                         {"skipped_records", summary.skipped_records},
                         {"interrupted", summary.interrupted},
                         {"model_files", std::move(files)}});
  if (summary.loss_scale) {
    json.set("skipped_steps", summary.skipped_steps);
    json.set("loss_scale", *summary.loss_scale);
  }
  if (!summary.tables.empty()) json.set("tables", counts(summary.tables));
  if (summary.stopped_at) json.set("stopped_at", *summary.stopped_at);
  write_text(path_ / "summary.json", json.text(2) + "\n");
}

}  // namespace hctr
