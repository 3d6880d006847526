#include "metrics/grouped_auc.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/expect.h"
#include "core/base/random.h"

namespace hctr {
namespace {

/// Whether an item with this hash is kept after `halvings` halvings.
bool survives(uint64_t hash, int halvings) { return halvings == 0 || hash >> (64 - halvings) == 0; }

}  // namespace

bool GroupedAuc::kept(int64_t group) const { return survives(mix64(static_cast<uint64_t>(group)), halvings_); }

void GroupedAuc::add(std::span<const float> scores, std::span<const float> labels,
                     std::span<const std::optional<int64_t>> groups) {
  HCTR_EXPECT(scores.size() == labels.size() && groups.size() == labels.size(), scores.size(), " scores and ",
              groups.size(), " groups for ", labels.size(), " labels");
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) not_a_number_ = true;
    if (!groups[i] || !kept(*groups[i]) || !survives(mix64(~samples_added_++), sample_halvings_)) continue;
    samples_.push_back({*groups[i], scores[i], labels[i] > 0.5f});
    while (samples_.size() >= most_) thin();
  }
}

void GroupedAuc::thin() {
  std::vector<int64_t> groups;
  groups.reserve(samples_.size());
  for (const Sample& sample : samples_) groups.push_back(sample.group);
  std::sort(groups.begin(), groups.end());
  const auto distinct = static_cast<size_t>(std::unique(groups.begin(), groups.end()) - groups.begin());
  if (distinct >= 2 * kFewGroups)
    halve_groups();
  else
    halve_samples();
}

void GroupedAuc::halve_groups() {
  ++halvings_;
  std::erase_if(samples_, [&](const Sample& sample) { return !kept(sample.group); });
}

void GroupedAuc::halve_samples() {
  ++sample_halvings_;
  uint64_t place = 0;
  const auto salt = static_cast<uint64_t>(sample_halvings_) << 48;
  std::erase_if(samples_, [&](const Sample&) { return (mix64(salt ^ place++) & 1) != 0; });
}

struct GroupedAuc::Kept {
  int64_t halvings, sample_halvings;
  uint64_t samples_added;
  int64_t not_a_number;
};

std::string GroupedAuc::state() const {
  const Kept kept{halvings_, sample_halvings_, samples_added_, not_a_number_};
  std::string bytes(reinterpret_cast<const char*>(&kept), sizeof kept);
  return bytes.append(reinterpret_cast<const char*>(samples_.data()), samples_.size() * sizeof(Sample));
}

void GroupedAuc::merge(std::string_view state) {
  HCTR_EXPECT(state.size() >= sizeof(Kept) && (state.size() - sizeof(Kept)) % sizeof(Sample) == 0, "groups of ",
              state.size(), " bytes");
  Kept header{};
  std::memcpy(&header, state.data(), sizeof header);
  GroupedAuc other(most_);
  other.halvings_ = static_cast<int>(header.halvings);
  other.sample_halvings_ = static_cast<int>(header.sample_halvings);
  other.samples_.resize((state.size() - sizeof header) / sizeof(Sample));
  if (!other.samples_.empty())
    std::memcpy(other.samples_.data(), state.data() + sizeof header, state.size() - sizeof header);
  while (other.halvings_ < halvings_) other.halve_groups();
  while (other.sample_halvings_ < sample_halvings_) other.halve_samples();
  while (halvings_ < other.halvings_) halve_groups();
  while (sample_halvings_ < other.sample_halvings_) halve_samples();
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  samples_added_ += header.samples_added;
  not_a_number_ |= header.not_a_number != 0;
  while (samples_.size() >= most_) thin();
}

double GroupedAuc::value() {
  if (not_a_number_) return std::numeric_limits<double>::quiet_NaN();
  std::sort(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) {
    return a.group != b.group ? a.group < b.group : a.score < b.score;
  });
  double total = 0, weight = 0;
  for (size_t i = 0; i < samples_.size();) {
    const int64_t group = samples_[i].group;
    double wins = 0, negatives = 0, positives = 0;
    while (i < samples_.size() && samples_[i].group == group) {
      const float score = samples_[i].score;
      double here[2] = {0, 0};
      for (; i < samples_.size() && samples_[i].group == group && samples_[i].score == score; ++i)
        here[samples_[i].positive ? 1 : 0] += 1;
      wins += here[1] * (negatives + 0.5 * here[0]);
      negatives += here[0];
      positives += here[1];
    }
    if (negatives == 0 || positives == 0) continue;
    total += wins / negatives / positives * (negatives + positives);
    weight += negatives + positives;
  }
  return weight > 0 ? total / weight : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace hctr
