#include "train/reporter.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hctr {
namespace {

std::string fixed(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

Reporter::Reporter(const Log& log, RunFolder& folder, int64_t total_samples)
    : log_(log), folder_(folder), total_samples_(total_samples), progress_("Training", "samples", total_samples) {}

double Reporter::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Reporter::queued(int64_t samples) {
  if (!folder_.path().empty() && ::isatty(STDERR_FILENO) == 1)
    progress_.update(samples);  // without a terminal the display lines show progress
}

void Reporter::event(const std::string& line) {
  progress_.clear();
  log_.info(line);
}

void Reporter::warning(const std::string& line) {
  progress_.clear();
  log_.warning(line);
}

void Reporter::go_on(const State& state) {
  start_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(state.seconds));
  shown_samples_ = state.samples;
  shown_iteration_ = state.iteration;
  tables_ = state.tables;
}

void Reporter::trained(int64_t iteration, int64_t samples, double loss, double learning_rate) {
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - shown_).count();
  const double rate = since > 0 ? static_cast<double>(samples - shown_samples_) / since : 0;
  const double left =
      samples > 0 ? seconds() / static_cast<double>(samples) * static_cast<double>(total_samples_ - samples) : 0;
  event(cat("Iter: ", iteration, " Time(", iteration - shown_iteration_, " iters): ", fixed("%.6f", since),
            "s Loss: ", fixed("%.6f", loss), " lr:", fixed("%.6f", learning_rate), " | ", with_unit_prefix(rate),
            " samples/s, ", readable_time(left > 0 ? left : 0), " left"));
  folder_.add_metrics(Json(Json::Object{{"kind", "train"},
                                        {"iteration", iteration},
                                        {"samples", samples},
                                        {"loss", loss},
                                        {"learning_rate", learning_rate},
                                        {"seconds", seconds()},
                                        {"samples_per_second", rate}}));
  shown_ = now;
  shown_samples_ = samples;
  shown_iteration_ = iteration;
}

void Reporter::evaluated(int64_t iteration, int64_t eval_samples, const std::map<std::string, double>& metrics,
                         double took) {
  Json line(Json::Object{{"kind", "eval"},
                         {"iteration", iteration},
                         {"samples", eval_samples},
                         {"seconds", seconds()},
                         {"eval_seconds", took}});
  for (const auto& [name, value] : metrics) {
    event(cat("Evaluation, ", name, ": ",
              std::isnan(value) ? "not a number: the labels are of one class, there are none, or a prediction is not a "
                                  "number"
                                : fixed("%.6f", value)));
    line.set(name, value);
  }
  event(cat("Eval Time for ", eval_samples, " samples: ", fixed("%.6f", took), "s"));
  folder_.add_metrics(line);
  shown_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(took));  // the training speed excludes evaluation
}

void Reporter::tables(int64_t iteration, const TableCounts& counts) {
  for (const auto& [name, now] : counts) {
    if (tables_[name] == now) continue;
    tables_[name] = now;
    Json line(Json::Object{{"kind", "table"}, {"iteration", iteration}, {"table", name}});
    std::string text;
    for (const auto& [what, count] : now) {
      line.set(what, count);
      std::string words = cat(count, " ", what);
      std::replace(words.begin(), words.end(), '_', ' ');
      text = what == "rows" ? cat(words, text) : cat(text, ", ", words);
    }
    event(cat("Table '", name, "': ", text));
    folder_.add_metrics(line);
  }
}

}  // namespace hctr
