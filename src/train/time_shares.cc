#include "train/time_shares.h"

#include <algorithm>
#include <utility>

namespace hctr {

TimeShares share_time(std::span<const PartInterval> intervals, size_t parts, double begin, double end) {
  struct Border {
    double at;
    std::pair<int, size_t> who;  // rank and part
    int change;                  // change in the number of running intervals
  };
  std::vector<Border> borders;
  for (const PartInterval& one : intervals) {
    const double from = std::max(one.begin, begin), to = std::min(one.end, end);
    if (from >= to) continue;
    borders.push_back({from, {one.rank, one.part}, 1});
    borders.push_back({to, {one.rank, one.part}, -1});
  }
  std::sort(borders.begin(), borders.end(), [](const Border& a, const Border& b) { return a.at < b.at; });

  TimeShares out{.share = std::vector<double>(parts), .together = std::vector<std::map<size_t, double>>(parts)};
  // [rank, part] number of running intervals; the lowest rank comes first
  std::map<std::pair<int, size_t>, int> running;
  const auto pass = [&](double seconds) {
    if (seconds <= 0) return;
    if (running.empty()) {
      out.idle += seconds;
      return;
    }
    const int lowest = running.begin()->first.first;
    const auto sharers =
        std::count_if(running.begin(), running.end(), [lowest](const auto& one) { return one.first.first == lowest; });
    for (const auto& [who, count] : running) {
      if (who.first == lowest) out.share[who.second] += seconds / static_cast<double>(sharers);
      for (const auto& [other, others] : running)
        if (other.second != who.second) out.together[who.second][other.second] += seconds;
    }
  };
  double now = begin;
  for (const Border& border : borders) {
    pass(border.at - now);
    now = border.at;
    const auto at = running.try_emplace(border.who, 0).first;
    at->second += border.change;
    if (at->second == 0) running.erase(at);
  }
  pass(end - now);
  return out;
}

}  // namespace hctr
