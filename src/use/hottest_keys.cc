#include "use/hottest_keys.h"

#include <algorithm>
#include <tuple>

#include "formats/model/access_stats_summary.h"
#include "score/feature_names.h"

namespace hctr {
namespace {

bool keeps_occurrences(const fs::path& statistics) {
  bool kept = false;
  if (fs::exists(statistics))
    read_access_stats(statistics, [&](const AccessStatsHead& head, auto) { kept = head.occurrences; });
  return kept;
}

/// A key of a slot with its number of occurrences. Sort order: the most frequent key first.
struct Counted {
  int64_t times;
  int32_t slot;
  int64_t key;
  bool operator<(const Counted& other) const {
    return std::tuple(-times, slot, key) < std::tuple(-other.times, other.slot, other.key);
  }
};

}  // namespace

KeyCounter::KeyCounter(const Config& config, const SavedModel& model) : slots_(feature_names(config.data).slots) {
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const EmbeddingSection& section = config.embeddings[e].section;
    Table table{
        .name = section.top(), .input = 0, .by_slot = section.identity_by_slot(), .statistics = {}, .times = {}};
    while (config.data.sparse[table.input].top != section.bottom) ++table.input;
    if (e < model.tables.size())
      if (fs::path statistics = access_stats_path(model.tables[e]); keeps_occurrences(statistics))
        table.statistics = std::move(statistics);
    table.times.resize(table.by_slot ? static_cast<size_t>(config.data.sparse[table.input].slot_num) : 1);
    tables_.push_back(std::move(table));
  }
}

void KeyCounter::add(const BatchLayout& layout, std::byte* batch, int64_t rows) {
  const BatchView view(layout, batch);
  for (Table& table : tables_) {
    if (!table.statistics.empty()) continue;
    const BatchView::Table& input = view.tables[table.input];
    for (int64_t s = 0; s < layout.shape.tables[table.input].slots; ++s) {
      auto& times = table.times[table.by_slot ? static_cast<size_t>(s) : 0];
      const int64_t first = s * layout.shape.samples;
      for (const int64_t key : input.keys_of(input.offset(first), input.offset(first + rows))) ++times[key];
    }
  }
}

std::vector<HottestKeys> KeyCounter::hottest(size_t most) const {
  std::vector<HottestKeys> all;
  for (const Table& table : tables_) {
    HottestKeys& of_table = all.emplace_back();
    of_table.table = table.name;
    of_table.in_training = !table.statistics.empty();
    std::vector<Counted> counted;
    if (of_table.in_training) {
      AccessStatsSummary summary(static_cast<int64_t>(most));
      read_access_stats(table.statistics, [&](const AccessStatsHead& head, auto rows) { summary.add(head, rows); });
      for (const formats::RowAccess& row : summary.hottest())
        counted.push_back({static_cast<int64_t>(row.occurrences), row.slot, row.key});
      of_table.times = summary.occurrences();
    }
    for (size_t s = 0; s < table.times.size(); ++s)
      for (const auto& [key, times] : table.times[s]) {
        counted.push_back({times, static_cast<int32_t>(s), key});
        of_table.times += times;
      }
    const size_t kept = std::min(most, counted.size());
    std::partial_sort(counted.begin(), counted.begin() + static_cast<std::ptrdiff_t>(kept), counted.end());
    for (size_t i = 0; i < kept; ++i)
      of_table.keys.push_back({table.by_slot ? slots_.at(table.input).at(static_cast<size_t>(counted[i].slot)) : "",
                               counted[i].key, counted[i].times});
  }
  return all;
}

}  // namespace hctr
