// --metrics-file: the latest metrics of a run in Prometheus' text format, for the textfile collector of node_exporter.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "config/json.h"
#include "core/base/log.h"

namespace hctr {

/// Rewrites the file at every line of metrics.jsonl and renames it into place. The first add() throws if writing fails;
/// after that, the first failure logs a warning.
class PrometheusFile {
 public:
  /// `run`: the id of the run, which labels every metric.
  PrometheusFile(std::filesystem::path, std::string run, const Log&);
  /// Adds the metrics of a line. Errors, in the first call only: Error(io).
  void add(const Json& line, double unix_seconds);
  /// The contents of the file.
  std::string text() const;

 private:
  bool write(const std::string& text) const;

  std::filesystem::path path_;
  std::string run_;
  const Log& log_;
  std::map<std::string, std::map<std::string, double>> values_;  // [name][labels except run]
  bool written_ = false, warned_ = false;
};

}  // namespace hctr
