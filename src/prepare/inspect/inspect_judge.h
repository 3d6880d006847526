// Checks one sample against the limits of a Data layer.
#pragma once

#include <string>
#include <vector>

#include "prepare/inspect/inspect.h"

namespace hctr {

class SampleJudge {
 public:
  SampleJudge(const RecordShape&, const InspectOptions&);
  /// Describes the problem of row `row` of a block; empty if the row is valid. Without a section, only numbers that are
  /// not finite are problems.
  std::string operator()(const SampleBlock&, int64_t row) const;

 private:
  std::string keys(const SampleBlock&, int64_t row) const;

  RecordShape shape_;
  bool limits_, binary_;
  std::vector<int64_t> sizes_, offsets_;  // limits from slot_size_array; empty if keys are not checked
};

}  // namespace hctr
