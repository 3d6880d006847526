#include "train/prometheus_file.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/expect.h"
#include "core/base/files.h"

namespace hctr {
namespace {

/// A field of a metrics line, and its Prometheus name.
struct Exported {
  const char *kind, *field, *name, *help;
};
constexpr Exported kExported[] = {
    {"train", "iteration", "huge_ctr_iteration", "Finished updates."},
    {"train", "samples", "huge_ctr_samples", "Samples trained on."},
    {"train", "epoch", "huge_ctr_epoch", "Passes over the training data."},
    {"train", "loss", "huge_ctr_loss", "Loss of the last batch."},
    {"train", "mean_loss", "huge_ctr_mean_loss", "Mean loss since the previous metrics line."},
    {"train", "learning_rate", "huge_ctr_learning_rate", "Learning rate of the last step."},
    {"train", "samples_per_second", "huge_ctr_samples_per_second",
     "Samples per second since the previous metrics "
     "line."},
    {"train", "reader_wait", "huge_ctr_reader_wait_ratio", "Fraction of the time in which steps waited for data."},
    {"train", "gpu_memory", "huge_ctr_gpu_memory_bytes", "Memory in use on the GPU of rank 0."},
    {"train", "host_memory", "huge_ctr_resident_memory_bytes", "Memory of the process of rank 0."},
    {"train", "seconds_left", "huge_ctr_seconds_left", "Expected seconds to the end of training."},
    {"eval", "eval_seconds", "huge_ctr_eval_seconds", "Duration of the last evaluation in seconds."},
    {"eval", "iteration", "huge_ctr_eval_iteration", "Finished updates at the last evaluation."},
};
constexpr const char *kMetricName = "huge_ctr_eval_metric", *kTableName = "huge_ctr_table",
                     *kTime = "huge_ctr_time_seconds", *kEnded = "huge_ctr_ended";

/// Quotes a label value.
std::string quoted(const std::string& text) {
  std::string quote = "\"";
  for (const char c : text) quote += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  return quote + "\"";
}

const char* help_of(const std::string& name) {
  for (const Exported& row : kExported)
    if (name == row.name) return row.help;
  return name == kMetricName  ? "Metrics of the last evaluation."
         : name == kTableName ? "Numbers of rows and keys of tables."
         : name == kEnded     ? "1 once training has ended."
                              : "Time of the last metrics line, in seconds since 1970.";
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

PrometheusFile::PrometheusFile(std::filesystem::path path, std::string run, const Log& log)
    : path_(std::move(path)), run_(std::move(run)), log_(log) {
  remove_parts_of_dead_processes(path_);
}

void PrometheusFile::add(const Json& line, double unix_seconds) {
  const Json* kind = line.find("kind");
  const std::string word = kind && kind->string() ? *kind->string() : "";
  for (const Exported& row : kExported)
    if (const Json* value = word == row.kind ? line.find(row.field) : nullptr; value && value->is_number())
      values_[row.name][""] = value->number();
  const Json* table = line.find("table");
  for (const auto& [name, value] : *line.object()) {
    if (word == "eval" && name != "iteration" && name != "samples" && name != "seconds" && name != "eval_seconds" &&
        (value.is_number() || value.is_null()))
      values_[kMetricName][cat(",metric=", quoted(name))] = value.is_null() ? std::nan("") : value.number();
    if (word == "table" && table && table->string() && name != "iteration" && value.is_number())
      values_[kTableName][cat(",table=", quoted(*table->string()), ",count=", quoted(name))] = value.number();
  }
  values_[kTime][""] = unix_seconds;
  values_[kEnded][""] = word == "end" ? 1 : 0;
  if (write(text())) {
    written_ = true;
    return;
  }
  const std::string why = cat("cannot write '", path_.string(), "' of --metrics-file: ", std::strerror(errno));
  if (!written_) throw Error(Kind::io, why);
  if (!std::exchange(warned_, true)) log_.warning(why, "; training continues without this file");
}

std::string PrometheusFile::text() const {
  std::string text;
  for (const auto& [name, values] : values_) {
    text += cat("# HELP ", name, " ", help_of(name), "\n# TYPE ", name, " gauge\n");
    for (const auto& [labels, value] : values)
      text += cat(name, "{run=", quoted(run_), labels, "} ", number_text(value), "\n");
  }
  return text;
}

/// Does not flush to disk as AtomicFile does, because the next line replaces the file, and a flush would delay the
/// step.
bool PrometheusFile::write(const std::string& text) const {
  const std::string temporary = cat(path_.string(), ".", ::getpid(), ".part");
  File file(std::fopen(temporary.c_str(), "we"));
  if (!file) return false;
  const bool whole = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (std::fclose(file.release()) == 0 && whole && std::rename(temporary.c_str(), path_.c_str()) == 0) return true;
  const int reason = errno;
  std::remove(temporary.c_str());
  errno = reason;
  return false;
}

}  // namespace hctr
