// What a benchmark reports: rows of named figures, as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/json.h"

namespace hctr::bench {

class Report {
 public:
  explicit Report(std::string device) : device_(std::move(device)) {}

  /// A figure of one case, printed at once. `ceiling`: what the same run measured as the limit of the chip, in the same
  /// unit; 0: none.
  void add(const std::string& what, const std::string& where, double value, const std::string& unit,
           double ceiling = 0);
  void write_json(const std::string& path) const;

 private:
  std::string device_;
  Json figures_ = Json(Json::Array{});
};

}  // namespace hctr::bench
