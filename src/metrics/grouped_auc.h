// GroupedAUC: the mean AUC over groups of samples, such as the samples of one user.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Collects up to `most` samples of 16 bytes. If there are more, half of the groups are dropped, chosen by a hash of
/// the group, so the value is computed on a random subset of groups. If fewer than kFewGroups groups would remain, half
/// of the samples are dropped instead, chosen by a hash of their index.
class GroupedAuc {
 public:
  static constexpr size_t kMost = size_t{1} << 23;
  static constexpr size_t kFewGroups = 4096;
  explicit GroupedAuc(size_t most = kMost) : most_(most) {}

  /// Adds samples; all spans have the same size. A label above 0.5 is a positive. Samples without a group are skipped.
  void add(std::span<const float> scores, std::span<const float> labels,
           std::span<const std::optional<int64_t>> groups);
  /// Serializes the state.
  std::string state() const;
  /// Adds the samples of another object with the same `most`, from its state(). If the two have different sampling
  /// rates, the result has the lower one.
  void merge(std::string_view state);
  /// The mean AUC, weighted by the number of samples in each group. Groups without negatives or without positives are
  /// skipped. NaN if no group remains, or if a score is NaN. Cost: sorts the samples.
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
