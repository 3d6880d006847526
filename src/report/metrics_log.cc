#include "report/metrics_log.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr const char* kOverSeconds[] = {"samples_per_second", "reader_wait", "gpu_memory", "host_memory"};

bool over_seconds(const std::string& name) {
  for (const char* one : kOverSeconds)
    if (name == one) return true;
  return false;
}

double number_of(const Json& line, const char* name) {
  const Json* value = line.find(name);
  return value && value->is_number() ? value->number() : std::nan("");
}

void add_training(const Json& line, double iteration, MetricsLog& log) {
  const double seconds = number_of(line, "seconds");
  for (const auto& [name, value] : *line.object()) {
    if (!value.is_number() || name == "iteration" || name == "samples" || name == "seconds" || name == "seconds_left")
      continue;
    const double x = over_seconds(name) ? seconds : iteration;
    if (std::isfinite(x)) log.training[name].push_back({x, value.number()});
  }
}

void add_evaluation(const Json& line, double iteration, MetricsLog& log) {
  for (const auto& [name, value] : *line.object()) {
    if (name == "kind" || name == "iteration" || name == "samples" || name == "seconds" || name == "time") continue;
    if (name == "undefined" && value.object()) {
      for (const auto& [metric, why] : *value.object())
        if (why.string()) log.undefined[metric] = *why.string();
    } else if (value.is_null())
      ++log.not_numbers[name];
    else if (value.is_number() && name != "eval_seconds")
      log.metrics[name].push_back({iteration, value.number()});
  }
}

void add_table(const Json& line, double iteration, std::map<std::string, Series>& counts) {
  for (const auto& [name, value] : *line.object())
    if (value.is_number() && name != "iteration" && name != "index_places")
      counts[name].push_back({iteration, value.number()});
  if (const double load = number_of(line, "rows") / number_of(line, "index_places"); std::isfinite(load))
    counts["load"].push_back({iteration, load});
}

void add_line(const Json& line, MetricsLog& log) {
  const Json *kind = line.find("kind"), *time = line.find("time"), *table = line.find("table");
  const std::string word = kind && kind->string() ? *kind->string() : "";
  if (time && time->string()) {
    if (log.first_time.empty()) log.first_time = *time->string();
    log.last_time = *time->string();
  }
  if (word == "start") log.start = line;
  if (word == "end") log.end = line;
  const double iteration = number_of(line, "iteration");
  if (!std::isfinite(iteration)) return;
  log.last_iteration = std::max(log.last_iteration, static_cast<int64_t>(iteration));
  if (word == "train") add_training(line, iteration, log);
  if (word == "eval") add_evaluation(line, iteration, log);
  if (word == "resume") log.resumed.push_back(static_cast<int64_t>(iteration));
  if (word == "table" && table && table->string()) add_table(line, iteration, log.tables[*table->string()]);
}

}  // namespace

MetricsLog read_metrics_log(const std::filesystem::path& path) {
  constexpr int64_t kMostNotes = 3;
  std::ifstream file(path);
  if (!file) throw Error(Kind::io, cat("cannot open '", path.string(), "': ", std::strerror(errno)));
  MetricsLog log;
  int64_t number = 0, broken = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    try {
      const Json line = Json::parse(text, "");
      if (!line.object()) throw Error(Kind::data, cat("holds ", line.kind(), ", not an object"));
      add_line(line, log);
      ++log.lines;
    } catch (const Error& error) {
      if (++broken <= kMostNotes)
        log.notes.push_back(cat("line ", number, " of ", path.filename().string(),
                                file.eof() ? " is truncated: the run was killed while writing" : " is broken", " (",
                                text.substr(0, 40), text.size() > 40 ? "...)" : ")"));
    }
  }
  if (broken > kMostNotes) log.notes.push_back(cat(broken - kMostNotes, " more lines are broken"));
  if (number == 0) log.notes.push_back(cat(path.filename().string(), " is empty: the run ended before its first line"));
  return log;
}

}  // namespace hctr
