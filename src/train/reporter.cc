#include "train/reporter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/progress.h"
#include "core/base/wall_time.h"
#include "net/model/table_counts.h"

namespace hctr {
namespace {

/// Whether a table count describes the tiers of rows or accesses to them.
bool of_memory(const std::string& count) {
  return count.find("_in_host_memory") != count.npos || count.ends_with("_gpu") || count == "reads" ||
         count.find("disk") != count.npos || count == "rows_of_batches" || count == "rows_read_ahead" ||
         count == kIndexPlaces;
}

}  // namespace

Reporter::Reporter(const Log& log, RunFolder& folder, const ReporterOptions& options, int64_t total_samples,
                   int64_t iteration)
    : log_(log),
      folder_(folder),
      options_(options),
      total_samples_(total_samples),
      progress_(options.silent ? nullptr : options.progress, "Training", "samples", total_samples) {
  if (options.silent) {
    options_ = {.silent = true};
    return;
  }
  if (options.tensorboard && !folder.path().empty())
    events_.emplace(folder.path(), iteration > 0 ? iteration + 1 : 0, log);
  if (!options.prometheus.empty()) prometheus_.emplace(options.prometheus, folder.run(), log);
}

double Reporter::seconds() const {
  return std::chrono::duration<double>(paused_.value_or(Clock::now()) - start_).count();
}

void Reporter::pause() {
  if (!paused_) paused_ = Clock::now();
}

void Reporter::go_on() {
  if (!paused_) return;
  const auto rested = Clock::now() - *paused_;
  start_ += rested;
  shown_ += rested;
  paused_.reset();
}

void Reporter::queued(int64_t samples) {
  // if the bar is not updated in place, the display lines show progress
  if (progress_.in_place()) progress_.update(samples);
}

void Reporter::waiting(int64_t samples, const std::string& remark) {
  if (progress_.in_place()) progress_.update(samples, remark);
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

void Reporter::add_line(Json line) {
  if (options_.silent) return;
  const double now = unix_time();
  line.set("time", utc_text(now));
  folder_.add_metrics(line);
  if (events_) events_->add(line, now);
  if (prometheus_) prometheus_->add(line, now);
  if (!options_.lines) return;
  progress_.clear();
  options_.lines(line.text());
}

void Reporter::trained(const TrainedFigures& at) {
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - shown_).count();
  rate_ = since > 0 ? static_cast<double>(at.samples - shown_samples_) / since : 0;
  const double wait = since > 0 ? std::min(1.0, (at.reader_seconds - shown_reader_seconds_) / since) : 0;
  const double disk_wait = since > 0 ? std::clamp((at.disk_seconds - shown_disk_seconds_) / since, 0.0, 1.0) : 0;
  std::optional<double> left;
  if (total_samples_ > 0)
    left = at.samples > 0 ? std::max(0.0, seconds() / static_cast<double>(at.samples) *
                                              static_cast<double>(total_samples_ - at.samples))
                          : 0;
  display(progress_line({.iteration = at.iteration,
                         .epoch = at.epoch,
                         .mean_loss = at.mean_loss,
                         .learning_rate = at.learning_rate,
                         .samples_per_second = rate_,
                         .reader_wait = wait,
                         .gpu_memory = at.gpu_memory,
                         .host_memory = at.host_memory,
                         .reads_from_gpu = at.reads_from_gpu,
                         .rows_from_disk = at.rows_from_disk,
                         .disk_wait = disk_wait,
                         .seconds_left = left}));
  Json line(Json::Object{{"kind", "train"}, {"iteration", at.iteration}});
  if (at.epoch) line.set("epoch", *at.epoch);
  line.set("samples", at.samples);
  line.set("loss", at.loss);
  line.set("mean_loss", at.mean_loss);
  line.set("learning_rate", at.learning_rate);
  line.set("seconds", seconds());
  line.set("samples_per_second", rate_);
  line.set("reader_wait", wait);
  if (at.gpu_memory) line.set("gpu_memory", *at.gpu_memory);
  if (at.host_memory) line.set("host_memory", *at.host_memory);
  if (at.reads_from_gpu) line.set("reads_from_gpu", *at.reads_from_gpu);
  if (at.rows_from_disk) line.set("rows_from_disk", *at.rows_from_disk).set("disk_wait", disk_wait);
  if (at.rows_from_disk && at.look_ahead) line.set("look_ahead", int64_t{*at.look_ahead});
  if (left) line.set("seconds_left", *left);
  add_line(std::move(line));
  shown_ = now;
  shown_samples_ = at.samples;
  shown_iteration_ = at.iteration;
  shown_reader_seconds_ = at.reader_seconds;
  shown_disk_seconds_ = at.disk_seconds;
}

void Reporter::evaluated(int64_t iteration, const Evaluator::Result& result, double took) {
  Json line(Json::Object{{"kind", "eval"},
                         {"iteration", iteration},
                         {"samples", result.samples},
                         {"seconds", seconds()},
                         {"eval_seconds", took}});
  for (const auto& [name, value] : result.metrics) {
    display(cat("Evaluation, ", name, ": ", metric_text(name, value, result.undefined)));
    line.set(name, value);
  }
  if (!result.undefined.empty()) line.set("undefined", Json::Object(result.undefined.begin(), result.undefined.end()));
  if (!result.matches.empty()) {
    for (const std::string& text : lines_of(result.matches)) display(cat("Evaluation, ", text));
    add_matches(result.matches, line);
  }
  display(cat("Eval Time for ", result.samples, " samples: ", formatted("%.6f", took), "s"));
  add_line(std::move(line));
  shown_ += std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(took));  // excludes evaluation time from the training speed
}

void Reporter::tables(int64_t iteration, const TableCounts& counts, bool shown) {
  for (const auto& [name, now] : counts) {
    std::map<std::string, int64_t> counted = now;
    counted.erase(kIndexPlaces);  // this count may differ in a resumed run
    if (tables_[name] == counted) continue;
    tables_[name] = std::move(counted);
    Json line(Json::Object{{"kind", "table"}, {"iteration", iteration}, {"table", name}});
    std::string text;
    for (const auto& [what, count] : now) {
      line.set(what, count);
      if (of_memory(what)) continue;  // the progress line and a separate line report this count
      std::string words = cat(count, " ", what);
      std::replace(words.begin(), words.end(), '_', ' ');
      text = what == "rows" ? cat(words, text) : cat(text, ", ", words);
    }
    if (shown && !text.empty()) display(cat("Table '", name, "': ", text));
    add_line(std::move(line));
  }
}

}  // namespace hctr
