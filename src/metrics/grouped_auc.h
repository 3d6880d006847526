// The mean of the areas under the ROC curve of groups of samples (a user's, say).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Collects samples, 16 bytes each, `most` at most. When there are more, it keeps half of the groups, chosen by a hash
/// of the group, so that the value is that of a random share of them. Once fewer than kFewGroups would be left, it
/// keeps half of the samples instead, chosen by a hash of their place.
class GroupedAuc {
 public:
  static constexpr size_t kMost = size_t{1} << 23;
  static constexpr size_t kFewGroups = 4096;
  explicit GroupedAuc(size_t most = kMost) : most_(most) {}

  /// A label above 0.5 is a positive; samples without a group are skipped. Sizes are equal.
  void add(std::span<const float> scores, std::span<const float> labels,
           std::span<const std::optional<int64_t>> groups);
  /// The state as bytes.
  std::string state() const;
  /// Adds the samples of another with the same `most`, from its state(). The result is sampled as sparsely as the
  /// sparser of both.
  void merge(std::string_view state);
  /// Weighted by the samples of each group; groups without negatives or positives are skipped. NaN when that leaves
  /// none, or when a score is NaN. Cost: a sort.
  double value();

 private:
  struct Sample {
    int64_t group;
    float score;
    bool positive;
  };
  struct Kept;
  bool kept(int64_t group) const;
  void thin();
  void halve_groups();
  void halve_samples();

  size_t most_;
  std::vector<Sample> samples_;
  int halvings_ = 0, sample_halvings_ = 0;
  uint64_t samples_added_ = 0;
  bool not_a_number_ = false;
};

}  // namespace hctr
