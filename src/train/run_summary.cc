// Builds summary.json, the results of a run.
#include <map>
#include <string>

#include "core/base/files.h"
#include "train/run_folder.h"

namespace hctr {
namespace {

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

Json to_json(const TrainSummary& summary) {
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
  if (!summary.checkpoint.empty()) json.set("checkpoint", summary.checkpoint.string());
  if (!summary.undefined.empty())
    json.set("undefined", Json::Object(summary.undefined.begin(), summary.undefined.end()));
  if (!summary.memory_parts.empty()) {
    Json parts(Json::Object{});
    for (const auto& [name, bytes] : summary.memory_parts) parts.set(name, bytes);
    json.set("memory_parts", std::move(parts));
  }
  if (summary.loss_scale) {
    json.set("skipped_steps", summary.skipped_steps);
    json.set("loss_scale", *summary.loss_scale);
  }
  if (const auto& between = summary.between_hosts)
    json.set("sent_to_other_hosts",
             Json(Json::Object{{"bytes", between->sent}, {"of_full_size", between->of_full_size}}));
  if (!summary.tables.empty()) json.set("tables", counts(summary.tables));
  if (summary.best_iteration) {
    json.set("best_iteration", *summary.best_iteration);
    json.set("best_metrics", numbers(summary.best_metrics));
  }
  if (summary.stopped_at) json.set("stopped_at", *summary.stopped_at);
  return json;
}

}  // namespace hctr
