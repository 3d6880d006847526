// Scores in order, with the numbers of negatives and positives at each: the base of AUC and NDCG, in bounded memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hctr {

/// Collects samples. Exact, as a sort of all scores would be, up to `most` different scores. Past that, neighbouring
/// scores count as equal, at most 8 / most of all negatives and positives together in one step, so that for samples in
/// no particular order the area is within 2 / most of the exact one; in practice much nearer, since inside a narrow
/// step half of the pairs are in order. Merging two rankings is exact while both are; a step of the one that overlaps
/// steps of the other moves to its middle, which misplaces at most 8 / most of the pairs. Memory: at most 56 most bytes
/// while samples are added; 8 bytes a sample up to most / 4 samples.
class Ranking {
 public:
  static constexpr size_t kMost = size_t{1} << 22;  // error below 5e-7, 235 MB
  explicit Ranking(size_t most = kMost) : most_(most) {}

  /// A label above 0.5 is a positive. Sizes are equal.
  void add(std::span<const float> scores, std::span<const float> labels);
  /// The state as bytes.
  std::string state();
  /// Adds the samples of another ranking with the same `most`, from its state().
  void merge(std::string_view state);
  int64_t negatives();
  int64_t positives();
  /// The probability that a positive has a higher score than a negative, ties counting one half: the area under the ROC
  /// curve. NaN without negatives or positives, or when a score is NaN.
  double area();
  /// Sum of 1 / log2(rank + 1) over the positives, ranks from 1 by falling score, over the largest it could be. Equal
  /// scores share their ranks. NaN without positives, or when a score is NaN.
  double normalized_gain();

 private:
  /// The samples with scores from `low` to `high`.
  struct Step {
    float low, high;
    int64_t negatives, positives;
  };
  /// Adds a step that lies above all of `steps`, or overlaps the last.
  static void append(std::vector<Step>& steps, const Step&);
  void fold();
  void coarsen();

  size_t most_;
  std::vector<std::pair<float, bool>> pending_;  // score, whether positive; not yet in steps_
  std::vector<Step> steps_;                      // rising, without overlap
  bool not_a_number_ = false;
};

}  // namespace hctr
