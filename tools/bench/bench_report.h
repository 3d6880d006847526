// The results of a benchmark, as a table and as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/json.h"

namespace hctr::bench {

class Report {
 public:
  explicit Report(std::string device) : device_(std::move(device)) {}

  /// Adds and prints a figure of one case. `ceiling`: the device's limit, in the same unit and measured in the same
  /// run; 0: none.
  void add(const std::string& what, const std::string& where, double value, const std::string& unit,
           double ceiling = 0);
  /// Adds a figure without printing it.
  void record(const std::string& what, const std::string& where, double value, const std::string& unit,
              double ceiling = 0);
  void write_json(const std::string& path) const;

 private:
  std::string device_;
  Json figures_ = Json(Json::Array{});
};

}  // namespace hctr::bench
