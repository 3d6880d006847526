// --metrics-file: the last numbers of a run in Prometheus' text format, for the textfile collector of its node
// exporter.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "config/json.h"
#include "core/base/log.h"

namespace hctr {

/// Written whole at every line of metrics.jsonl, and renamed to its name. A file that cannot be written later on is
/// warned of once.
class PrometheusFile {
 public:
  /// `run`: the id of the run, a label of every number.
  PrometheusFile(std::filesystem::path, std::string run, const Log&);
  /// Takes the numbers of a line. Errors of the first one: Error(io).
  void add(const Json& line, double unix_seconds);
  /// What the file holds.
  std::string text() const;

 private:
  bool write(const std::string& text) const;

  std::filesystem::path path_;
  std::string run_;
  const Log& log_;
  std::map<std::string, std::map<std::string, double>> values_;  // [name][labels other than run]
  bool written_ = false, warned_ = false;
};

}  // namespace hctr
