// Generates samples. Each sample is a pure function of (seed, part, index).
#pragma once

#include <string_view>
#include <vector>

#include "prepare/generate/generate.h"
#include "prepare/generate/planted_truth.h"
#include "prepare/generate/power_law.h"
#include "prepare/generate/sample_encoder.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

/// Constructor errors: Error(usage) if the options do not fit the section.
class SampleMaker {
 public:
  SampleMaker(const DataSection&, const GenerateOptions&);

  /// Generates sample `index` of `part` (a stream number) into `sample`, whose memory is reused. For each label, also
  /// writes its true probability and whether the drawn label is positive. Shapes: probability [label_dim], positive
  /// [label_dim].
  void make(uint64_t part, int64_t index, GeneratedSample& sample, double* probability, bool* positive) const;

  const NormStyle& style() const { return style_; }
  const std::vector<int64_t>& most_nnz() const { return most_nnz_; }
  /// Whether a slot may be empty because preceding slots have used up the input's limit.
  bool may_run_out() const;
  const std::vector<int64_t>& vocabulary() const { return vocabulary_; }

 private:
  class Draws;
  void draw_inputs(Draws&, PlantedSample&) const;
  void check_raw() const;
  void check_added(const DataSection&) const;

  RecordShape shape_;
  NormStyle style_;
  uint64_t seed_;
  bool hashed_;
  std::vector<int64_t> vocabulary_, offsets_;  // [slots]
  std::vector<int64_t> most_nnz_;              // [slots]
  bool fixed_nnz_;                             // whether all samples have the same number of keys in a slot
  std::vector<PowerLaw> laws_;                 // one law per distinct vocabulary size
  std::vector<size_t> law_of_;                 // [slots]
  std::vector<PlantedTruth> truths_;           // [label_dim]
};

}  // namespace hctr
