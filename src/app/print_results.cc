#include "app/print_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/base/progress.h"
#include "metrics/undefined.h"
#include "program/terminal.h"
#include "score/key_matches.h"
#include "train/run_folder.h"

namespace hctr {
namespace {

std::string rounded(double value) {
  if (std::isnan(value)) return "not a number";
  return formatted("%.6f", value);
}

using Metrics = std::map<std::string, double>;

void print_metrics(const Metrics& metrics, const std::map<std::string, std::string>& undefined,
                   const Metrics& best_possible, const char* indent) {
  for (const auto& [name, value] : metrics) {
    const auto best = best_possible.find(name);
    print(cat(
        indent, name, ": ", metric_text(name, value, undefined),
        best != best_possible.end() ? cat(" (best possible on this data: ", rounded(best->second), ")") : std::string(),
        "\n"));
  }
}

Json numbers(const Metrics& values) {
  Json object(Json::Object{});
  for (const auto& [name, value] : values) object.set(name, value);
  return object;
}

/// Prints how many rows are in host memory and on disk, if there are any.
void print_tiers(const std::map<std::string, std::map<std::string, int64_t>>& tables) {
  std::map<std::string, int64_t> sums;
  for (const auto& [name, counts] : tables)
    for (const auto& [what, count] : counts) sums[what] += count;
  const int64_t host = sums["rows_in_host_memory"], disk = sums["rows_on_disk"];
  if (host == 0 && disk == 0) return;
  std::string line = cat("  rows of tables: ", host, " in host memory, ", disk, " on disk");
  if (sums["rows_to_disk"] > 0)
    line += cat(" (", sums["rows_to_disk"], " rows written to disk, ", sums["rows_from_disk"], " rows read back, ",
                readable_time(1e-3 * static_cast<double>(sums["disk_wait_ms"])), " of waiting for the disk)");
  print(line + "\n");
}

void warn_of_skipped(const ModelUse& use) {
  if (use.skipped_records > 0)
    print_note(cat("warning: ", use.skipped_records, use.skipped_records == 1 ? " bad record was" : " bad records were",
                   " skipped; row numbers in the scores count bad records too\n"));
}

void print_line(const Json& line) {
  print_json(line.text() + "\n");
  flush_output();
}

}  // namespace

void print_summary(const TrainSummary& summary, bool as_json) {
  if (as_json) {
    Json line(Json::Object{{"kind", "summary"}, {"run_dir", summary.run_dir.string()}});
    const Json fields = to_json(summary);
    for (const auto& [name, value] : *fields.object()) line.set(name, value);
    print_line(line);
    return;
  }
  print(cat("\n", summary.interrupted ? "Stopped on request" : "Done", ": ", summary.iterations, " iterations, ",
            with_unit_prefix(static_cast<double>(summary.samples)), " samples in ", readable_time(summary.seconds),
            " (", with_unit_prefix(summary.samples_per_second), " samples/s) on ", summary.device,
            "\n  loss of the last batch: ", rounded(summary.final_loss), "\n"));
  print_metrics(summary.metrics, summary.undefined, summary.best_possible, "  ");
  if (summary.best_iteration) {
    print(cat("  best model: iteration ", *summary.best_iteration, ":\n"));
    print_metrics(summary.best_metrics, {}, summary.best_possible, "    ");
  }
  print_tiers(summary.tables);
  if (const auto& between = summary.between_hosts)
    print(cat("  embedding data sent to other hosts: ", with_unit_prefix(static_cast<double>(between->sent)),
              "B; messages of the maximum size would be ", with_unit_prefix(static_cast<double>(between->of_full_size)),
              "B\n"));
  for (const auto& file : summary.model_files) print(cat("  model: ", file.string(), "\n"));
  if (!summary.checkpoint.empty()) print(cat("  checkpoint: ", summary.checkpoint.string(), "\n"));
  print(cat("  run folder: ", summary.run_dir.string(), "\n"));
  flush_output();
}

void print_evaluation(const EvaluationSummary& summary, bool as_json) {
  if (as_json) {
    Json line(Json::Object{{"kind", "eval"},
                           {"model", summary.model},
                           {"iteration", summary.iteration},
                           {"data", summary.data},
                           {"samples", summary.samples},
                           {"seconds", summary.seconds},
                           {"device", summary.device},
                           {"skipped_records", summary.skipped_records},
                           {"metrics", numbers(summary.metrics)},
                           {"best_possible", numbers(summary.best_possible)}});
    add_matches(summary.matches, line);
    if (!summary.undefined.empty())
      line.set("undefined", Json::Object(summary.undefined.begin(), summary.undefined.end()));
    print_line(line);
    return;
  }
  warn_of_skipped(summary);
  print_note(cat("Evaluated ", summary.samples, " samples of '", summary.data, "' in ", readable_time(summary.seconds),
                 " on ", summary.device, ".\n"));
  print_metrics(summary.metrics, summary.undefined, summary.best_possible, "");
  flush_output();
}

void print_export(const ExportSummary& summary, const std::string& folder) {
  warn_of_skipped(summary);
  for (const auto& file : summary.files) print(file.string() + "\n");
  flush_output();
  print_note(cat("Exported ", summary.model, " to '", folder, "': ", summary.files.size(),
                 summary.files.size() == 1 ? " file, " : " files, ",
                 with_unit_prefix(static_cast<double>(summary.bytes)), "B",
                 summary.rows > 0 ? cat(", with the scores of ", summary.rows, " rows") : std::string(), " in ",
                 readable_time(summary.seconds), "\n"));
}

void print_prediction(const PredictionSummary& summary, const std::string& out) {
  warn_of_skipped(summary);
  print_note(cat("Scored ", summary.rows, " rows of '", summary.data, "' in ", readable_time(summary.seconds), " (",
                 with_unit_prefix(static_cast<double>(summary.rows) / std::max(summary.seconds, 1e-9)), " rows/s) on ",
                 summary.device, out == "-" ? "" : ": " + out, "\n"));
}

}  // namespace hctr
