// Reference table with a policy: ordered maps, and every rule as in docs/embedding.md.
#pragma once

#include <algorithm>

#include "ops/embedding/admit_keys.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {

class PlainPolicyTable : public PlainTable {
 public:
  explicit PlainPolicyTable(const TableSpec& spec) : PlainTable(spec) {}

  struct Counts {
    int64_t evicted = 0, expired = 0, ignored = 0, not_admitted = 0, candidates_dropped = 0;
  } counts;

  Identity identity(size_t slot, int64_t key) const override {
    const Identity id = PlainTable::identity(slot, key);
    return rows.contains(id) || !shares() ? id : kShared;
  }

  /// Removes expired rows. Must be called before the batch of step t.
  void begin(int64_t t) {
    if (spec_.policy.expire_after > 0 && t % std::max<int64_t>(1, spec_.policy.expire_after / 16) == 0) {
      for (auto row = stats_.begin(); row != stats_.end();)
        if (t - 1 - row->second.last >= spec_.policy.expire_after) {
          rows.erase(row->first);
          row = stats_.erase(row);
          ++counts.expired;
        } else {
          ++row;
        }
      for (auto candidate = candidates_.begin(); candidate != candidates_.end();)
        if (candidate->second.occurrences == 0 || t - 1 - candidate->second.last >= spec_.policy.expire_after) {
          counts.candidates_dropped += candidate->second.occurrences > 0;
          candidate = candidates_.erase(candidate);
        } else {
          ++candidate;
        }
      if (t > spec_.policy.expire_after && static_cast<int64_t>(stats_.size()) < spec_.row_limit) closed_ = false;
    }
    if (static_cast<int64_t>(candidates_.size()) > spec_.policy.max_candidates) {
      std::erase_if(candidates_, [](const auto& candidate) { return candidate.second.occurrences == 0; });
      const int64_t most = spec_.policy.max_candidates - spec_.policy.max_candidates / 16;
      for (int64_t more = static_cast<int64_t>(candidates_.size()) - most; more > 0;
           --more, ++counts.candidates_dropped)
        candidates_.erase(std::min_element(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second.last, a.first) < std::pair(b.second.last, b.first);
        }));
    }
  }

  /// Assigns rows to the batch of step t.
  void admit(const Bags& bags, int64_t t, int64_t first_sample = 0) {
    std::map<Identity, int64_t> unknown, known;
    std::map<Identity, bool> drawn;
    for (size_t s = 0; s < bags.size(); ++s)
      for (size_t b = 0; b < bags[s].size(); ++b)
        for (size_t i = 0; i < bags[s][b].size(); ++i) {
          const Identity id = PlainTable::identity(s, bags[s][b][i]);
          ++(rows.contains(id) ? known : unknown)[id];
          ops::AdmissionRule rule{.random_key = random_key(7, random_stream("admission:" + spec_.name)),
                                  .threshold = ops::AdmissionRule::threshold_of(spec_.policy.admit_probability)};
          drawn[id] |= rule.drawn(bags[s][b][i], static_cast<int64_t>(s), first_sample + static_cast<int64_t>(b));
        }
    std::map<Identity, int64_t> fresh;
    for (const auto& [id, times] : unknown) {
      bool enters = !closed_ && drawn[id];
      if (spec_.policy.min_count > 1) {
        Access& candidate = candidates_[id];
        candidate = {t, candidate.occurrences + times};
        enters = !closed_ && candidate.occurrences >= spec_.policy.min_count;
        if (enters) candidate.occurrences = 0;
      }
      if (enters)
        fresh[id] = times;
      else
        (closed_ ? counts.ignored : counts.not_admitted) += times;
    }
    if (spec_.policy.shares_row() && spec_.row_limit < static_cast<int64_t>(stats_.size() + fresh.size())) {
      while (spec_.row_limit < static_cast<int64_t>(stats_.size() + fresh.size())) {
        counts.ignored += fresh.rbegin()->second;
        fresh.erase(std::prev(fresh.end()));
      }
      closed_ = true;
      if (!rows.contains(kShared)) rows[kShared] = new_row("shared row:", kShared);
    }
    for (const auto& [id, times] : fresh) {
      rows[id] = new_row("table:", id);
      known[id] = times;
    }
    for (const auto& [id, times] : known) stats_[id] = {t, stats_[id].occurrences + times};
    if (spec_.policy.evicts() && spec_.row_limit < static_cast<int64_t>(stats_.size())) evict(known);
  }

  bool closed() const { return closed_; }

 private:
  struct Access {
    int64_t last = 0, occurrences = 0;
  };
  bool shares() const { return rows.contains(kShared); }

  void evict(const std::map<Identity, int64_t>& of_batch) {
    std::vector<std::pair<int64_t, Identity>> others;
    for (const auto& [id, row] : stats_)
      if (!of_batch.contains(id))
        others.emplace_back(spec_.policy.when_full == WhenFull::evict_lru ? row.last : row.occurrences, id);
    std::sort(others.begin(), others.end());
    const int64_t left = std::max(spec_.row_limit - spec_.row_limit / 16, static_cast<int64_t>(of_batch.size()));
    for (size_t i = 0; static_cast<int64_t>(stats_.size()) > left; ++i, ++counts.evicted) {
      rows.erase(others[i].second);
      stats_.erase(others[i].second);
    }
  }

  std::map<Identity, Access> stats_, candidates_;
  bool closed_ = false;
};

}  // namespace hctr::test
