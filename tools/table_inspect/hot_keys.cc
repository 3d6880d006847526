#include "hot_keys.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/expect.h"
#include "program/terminal.h"

namespace hctr {

std::vector<HotKey> hottest(const KeyCounts& counts, int64_t top) {
  std::vector<HotKey> all;
  for (const auto& [slot, keys] : counts.of_slot)
    for (const auto& [key, times] : keys) all.push_back({slot, key, times});
  const auto more = [](const HotKey& a, const HotKey& b) {
    return std::tuple(-a.times, a.slot, a.key) < std::tuple(-b.times, b.slot, b.key);
  };
  const auto end = all.begin() + std::min<std::ptrdiff_t>(top, static_cast<std::ptrdiff_t>(all.size()));
  std::partial_sort(all.begin(), end, all.end(), more);
  all.erase(end, all.end());
  return all;
}

std::vector<HotKey> hottest(const std::vector<formats::RowAccess>& stats) {
  std::vector<HotKey> keys;
  for (const formats::RowAccess& row : stats)
    keys.push_back({static_cast<uint64_t>(row.slot), row.key, static_cast<int64_t>(row.occurrences)});
  return keys;
}

void NormsOfKeys::want(const std::vector<HotKey>& keys) {
  for (const HotKey& key : keys) norms_.try_emplace({key.slot, key.key}, -1.0);
}

void NormsOfKeys::take_from(const SparseRows& part, int64_t dim) {
  for (size_t i = 0; !norms_.empty() && i < part.keys.size(); ++i) {
    const auto found = norms_.find({part.slots.empty() ? 0 : part.slots[i], part.keys[i]});
    if (found == norms_.end()) continue;
    double squares = 0;
    for (int64_t e = 0; e < dim; ++e) {
      const double x = static_cast<double>(part.vectors[i * static_cast<size_t>(dim) + static_cast<size_t>(e)]);
      squares += x * x;
    }
    found->second = std::sqrt(squares);
  }
}

std::string name_of(bool by_slot, uint64_t slot, int64_t key) {
  return by_slot ? cat("slot ", slot, ", key ", key) : cat("key ", key);
}

Json show_hottest(const std::string& title, bool by_slot, const std::vector<HotKey>& keys, const NormsOfKeys& norms) {
  print_formatted("\n  %s\n", title.c_str());
  Json out(Json::Array{});
  for (const HotKey& key : keys) {
    const double norm = norms.of(key);
    print_formatted("  %s  %lld times, %s\n", name_of(by_slot, key.slot, key.key).c_str(),
                    static_cast<long long>(key.times), norm < 0 ? "has no row" : cat("norm ", norm).c_str());
    Json entry(Json::Object{{"slot", static_cast<int64_t>(key.slot)}, {"key", key.key}, {"times", key.times}});
    if (norm >= 0) entry.set("norm", norm);
    out.add(entry);
  }
  return out;
}

}  // namespace hctr
