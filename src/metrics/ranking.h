// Samples ranked by score, with the number of negatives and positives per score, in bounded memory. Basis of AUC and
// NDCG.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hctr {

/// Collects samples by score. The ranking is exact up to `most` distinct scores. Beyond that, neighboring scores are
/// merged into steps, within which all scores count as equal. The shares of all negatives and all positives in a step
/// sum to at most 8 / most. For samples in random order, the area is within 2 / most of the exact value. In practice
/// the error is much smaller, because ties count 0.5, and about half of the pairs within a narrow step are ordered
/// correctly. Merging exact rankings is exact. If the added ranking has merged steps, and one of them overlaps steps of
/// this ranking, all samples of the added step get the middle of its score range. This misplaces at most 8 / most of
/// the pairs. Memory: 8 bytes per sample for up to most / 4 samples; beyond that, at most 56 * most bytes, including
/// pending samples.
class Ranking {
 public:
  static constexpr size_t kMost = size_t{1} << 22;  // the error is below 5e-7; memory is at most 235 MB
  explicit Ranking(size_t most = kMost) : most_(most) {}

  /// Adds samples; both spans have the same size. A label above 0.5 is a positive.
  void add(std::span<const float> scores, std::span<const float> labels);
  /// Serializes the state.
  std::string state();
  /// Adds the samples of another ranking with the same `most`, from its state().
  void merge(std::string_view state);
  int64_t negatives();
  int64_t positives();
  /// The area under the ROC curve: the probability that a positive scores higher than a negative, where ties count 0.5.
  /// NaN without negatives or without positives, or if a score is NaN.
  double area();
  /// NDCG: the sum of 1 / log2(rank + 1) over all positives, divided by its largest possible value. Rank 1 has the
  /// highest score; equal scores share their ranks. NaN without positives, or if a score is NaN.
  double normalized_gain();

 private:
  /// The samples with scores in [low, high].
  struct Step {
    float low, high;
    int64_t negatives, positives;
  };
  /// Appends a step that is above all of `steps` or overlaps the last one.
  static void append(std::vector<Step>& steps, const Step&);
  void fold();
  void coarsen();

  size_t most_;
  std::vector<std::pair<float, bool>> pending_;  // samples not in steps_ yet: score, and whether positive
  std::vector<Step> steps_;                      // in ascending order, without overlaps
  bool not_a_number_ = false;
};

}  // namespace hctr
