#include "metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class Step>
void join(Step& step, const Step& with) {
  step.high = std::max(step.high, with.high);
  step.negatives += with.negatives;
  step.positives += with.positives;
}

/// Sum of the discounts 1 / log2(place + 2) for places [first, last), counted from 0.
double discounts(int64_t first, int64_t last) {
  double sum = 0;
  for (int64_t place = first; place < last; ++place) sum += 1 / std::log2(static_cast<double>(place) + 2);
  return sum;
}

}  // namespace

void Ranking::add(std::span<const float> scores, std::span<const float> labels) {
  HCTR_EXPECT(scores.size() == labels.size(), scores.size(), " scores for ", labels.size(), " labels");
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i]))
      not_a_number_ = true;
    else
      pending_.emplace_back(scores[i], labels[i] > 0.5f);
    if (pending_.size() >= std::max<size_t>(most_ / 4, 1)) fold();
  }
}

void Ranking::append(std::vector<Step>& steps, const Step& step) {
  if (!steps.empty() && step.low <= steps.back().high)
    join(steps.back(), step);
  else
    steps.push_back(step);
}

std::string Ranking::state() {
  fold();
  std::string bytes(1, not_a_number_ ? '\1' : '\0');
  bytes.append(reinterpret_cast<const char*>(steps_.data()), steps_.size() * sizeof(Step));
  return bytes;
}

void Ranking::merge(std::string_view state) {
  HCTR_EXPECT(!state.empty() && (state.size() - 1) % sizeof(Step) == 0, "a ranking of ", state.size(), " bytes");
  fold();
  not_a_number_ |= state[0] != '\0';
  std::vector<Step> others((state.size() - 1) / sizeof(Step)), all;
  if (!others.empty()) std::memcpy(others.data(), state.data() + 1, state.size() - 1);
  all.reserve(steps_.size() + others.size());
  size_t next = 0;
  for (Step step : others) {
    while (next < steps_.size() && steps_[next].high < step.low) append(all, steps_[next++]);
    // The step overlaps steps of this ranking. Merging them could cause further overlaps. Instead, all samples of the
    // step get the middle of its score range.
    if (next < steps_.size() && steps_[next].low <= step.high) {
      const float middle = step.low + (step.high - step.low) / 2;
      step.low = step.high = std::isfinite(middle) ? middle : step.low;
    }
    while (next < steps_.size() && steps_[next].low <= step.low) append(all, steps_[next++]);
    append(all, step);
  }
  while (next < steps_.size()) append(all, steps_[next++]);
  steps_ = std::move(all);
  if (steps_.size() > most_) coarsen();
}

/// Merges pending samples into steps_.
void Ranking::fold() {
  std::sort(pending_.begin(), pending_.end());
  std::vector<Step> all;
  all.reserve(steps_.size() + pending_.size());
  size_t next = 0;
  for (const auto& [score, positive] : pending_) {
    while (next < steps_.size() && steps_[next].low <= score) append(all, steps_[next++]);
    append(all, {score, score, positive ? 0 : 1, positive ? 1 : 0});
  }
  while (next < steps_.size()) append(all, steps_[next++]);
  steps_ = std::move(all);
  pending_.clear();
  if (steps_.size() > most_) coarsen();
}

/// Merges neighboring steps while their combined share is at most 8 / most. Afterward two neighbors have a combined
/// share above 8 / most. All shares sum to 2, so at most half of the allowed steps remain. A step that contains the
/// fraction a of the negatives and the fraction c of the positives changes the area by at most a c / 2.
void Ranking::coarsen() {
  const double all_negatives = std::max(1.0, static_cast<double>(negatives())),
               all_positives = std::max(1.0, static_cast<double>(positives()));
  const double most_share = 8.0 / static_cast<double>(most_);
  const auto share = [&](const Step& step) {
    return static_cast<double>(step.negatives) / all_negatives + static_cast<double>(step.positives) / all_positives;
  };
  size_t last = 0;
  for (size_t i = 1; i < steps_.size(); ++i) {
    if (share(steps_[last]) + share(steps_[i]) <= most_share)
      join(steps_[last], steps_[i]);
    else
      steps_[++last] = steps_[i];
  }
  steps_.resize(last + 1);
}

int64_t Ranking::negatives() {
  if (!pending_.empty()) fold();
  int64_t sum = 0;
  for (const Step& step : steps_) sum += step.negatives;
  return sum;
}

int64_t Ranking::positives() {
  if (!pending_.empty()) fold();
  int64_t sum = 0;
  for (const Step& step : steps_) sum += step.positives;
  return sum;
}

double Ranking::area() {
  const auto all_negatives = static_cast<double>(negatives()), all_positives = static_cast<double>(positives());
  if (not_a_number_ || all_negatives == 0 || all_positives == 0) return kNaN;
  double wins = 0;
  int64_t below = 0;
  for (const Step& step : steps_) {
    wins +=
        static_cast<double>(step.positives) * (static_cast<double>(below) + 0.5 * static_cast<double>(step.negatives));
    below += step.negatives;
  }
  return wins / all_negatives / all_positives;
}

double Ranking::normalized_gain() {
  const int64_t all_positives = positives();
  if (not_a_number_ || all_positives == 0) return kNaN;
  double gain = 0;
  int64_t place = 0;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const int64_t count = step->negatives + step->positives;
    if (step->positives > 0)
      gain += static_cast<double>(step->positives) * discounts(place, place + count) / static_cast<double>(count);
    place += count;
  }
  return gain / discounts(0, all_positives);
}

}  // namespace hctr
