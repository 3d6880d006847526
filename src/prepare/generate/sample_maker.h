// One generated sample after another, each a pure function of (seed, part, index).
#pragma once

#include <string_view>
#include <vector>

#include "prepare/generate/generate.h"
#include "prepare/generate/planted_truth.h"
#include "prepare/generate/power_law.h"
#include "prepare/generate/sample_encoder.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

/// Errors of the constructor: Error(usage) for options that do not fit the section.
class SampleMaker {
 public:
  SampleMaker(const DataSection&, const GenerateOptions&);

  /// Makes sample `index` of `part` (a stream number), with the true probability of each label and whether it came out
  /// positive: probability [label_dim], positive [label_dim]. `sample` is memory of one thread, used again.
  void make(uint64_t part, int64_t index, GeneratedSample& sample, double* probability, bool* positive) const;

  const NormStyle& style() const { return style_; }
  const std::vector<int64_t>& most_nnz() const { return most_nnz_; }
  /// Whether a slot may be left without keys because the slots before it used up what the input may have.
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
  bool fixed_nnz_;                             // each slot has as many keys, always
  std::vector<PowerLaw> laws_;                 // of distinct vocabularies
  std::vector<size_t> law_of_;                 // [slots]
  std::vector<PlantedTruth> truths_;           // [label_dim]
};

}  // namespace hctr
