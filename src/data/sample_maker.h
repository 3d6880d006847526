// One generated sample after another, each a pure function of (seed, part, index).
#pragma once

#include <string_view>
#include <vector>

#include "data/generate.h"
#include "data/norm_writer.h"
#include "data/planted_truth.h"
#include "data/power_law.h"

namespace hctr {

/// Errors of the constructor: Error(usage) for options that do not fit the clause.
class SampleMaker {
 public:
  SampleMaker(const DataClause&, const GenerateOptions&);

  /// Memory of one thread.
  struct Scratch {
    PlantedSample sample;
    std::vector<int64_t> keys;
    std::vector<float> label;
  };
  /// Appends sample `index` of `part` (a stream number) to `out`, with the true probability of each label and whether it came out
  /// positive: probability [label_dim], positive [label_dim].
  void make(uint64_t part, int64_t index, Scratch&, std::vector<std::byte>& out, double* probability, bool* positive) const;

  const NormStyle& style() const { return style_; }
  const std::vector<int64_t>& vocabulary() const { return vocabulary_; }

 private:
  class Draws;
  void draw_inputs(Draws&, PlantedSample&) const;

  RecordShape shape_;
  NormStyle style_;
  uint64_t seed_;
  bool hashed_;
  std::vector<int64_t> vocabulary_, offsets_;  // [slots]
  std::vector<int64_t> most_nnz_;              // [slots]
  std::vector<PowerLaw> laws_;                 // of distinct vocabularies
  std::vector<size_t> law_of_;                 // [slots]
  std::vector<PlantedTruth> truths_;           // [label_dim]
};

}  // namespace hctr
