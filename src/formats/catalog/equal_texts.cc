#include "formats/catalog/equal_texts.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "core/base/expect.h"
#include "formats/catalog/first_rows.h"
#include "formats/catalog/open_set.h"
#include "formats/catalog/visit_first_rows.h"

namespace hctr {
namespace {

constexpr int64_t kRowsForTexts = 5'000;
constexpr size_t kFewTexts = 10;      // with fewer values, equal texts may be coincidence
constexpr double kMostlyEqual = 0.5;  // minimum fraction of a slot's values that occur in the lists of another slot

/// A slot that hashes or numbers its texts independently of other slots.
struct ApartSlot {
  size_t slot = 0, input = 0;
  std::string column{};
  bool lists = false;                   // whether some row has several values
  std::unordered_set<int64_t> texts{};  // hashes of the texts; equal texts of different slots have equal hashes
};

/// Assigns one key space to all slots whose keys are independent of other slots. Equal texts then get equal keys in all
/// these slots. Returns the slots.
std::vector<ApartSlot> make_comparable(DataSection& section, std::vector<SlotColumns>& groups) {
  std::vector<size_t> inputs;
  for (size_t i = 0; i < section.sparse.size(); ++i)
    inputs.resize(inputs.size() + static_cast<size_t>(std::max<int64_t>(section.sparse[i].slot_num, 0)), i);
  std::vector<ApartSlot> slots;
  size_t slot = 0;
  for (SlotColumns& group : groups) {
    const bool hashed = group.keys.value_or(KeyRule::hash) == KeyRule::hash || group.keys == KeyRule::vocabulary;
    if (!hashed || !group.key_space.empty()) {
      slot += group.columns.size();
      continue;
    }
    for (const std::string& column : group.columns) {
      if (slot < inputs.size()) slots.push_back({.slot = slot, .input = inputs[slot], .column = column});
      ++slot;
    }
    if (group.keys == KeyRule::vocabulary) group.keys = KeyRule::hash;
    group.vocabulary.clear();
    group.buckets = 0;
    group.key_space = "equal texts";
  }
  return slots;
}

void look_at_texts(const SampleBlock& block, int64_t rows, ApartSlot& one) {
  for (int64_t r = 0; r < rows; ++r) {
    const size_t bag = one.slot * static_cast<size_t>(block.rows) + static_cast<size_t>(r);
    const auto begin = block.offsets[bag], end = block.offsets[bag + 1];
    one.lists = one.lists || end - begin > 1;
    for (int32_t k = begin; k < end; ++k) one.texts.insert(block.keys[static_cast<size_t>(k)]);
  }
}

double share_of_texts(const ApartSlot& item, const ApartSlot& lists) {
  const auto found =
      std::count_if(item.texts.begin(), item.texts.end(), [&](int64_t text) { return lists.texts.contains(text); });
  return static_cast<double>(found) / static_cast<double>(item.texts.size());
}

}  // namespace

std::vector<std::string> notes_on_equal_texts(const DataSection& section, const Source& source, KeyWidth width) {
  DataSection own = section;
  const auto columns = columns_of(own);
  if (!columns) return {};
  std::vector<ApartSlot> slots = make_comparable(own, *columns->slots);
  const bool any_pair = std::any_of(slots.begin(), slots.end(), [&](const ApartSlot& one) {
    const bool may_have_lists = own.sparse[one.input].limits().max_nnz > 1;
    return may_have_lists &&
           std::count_if(slots.begin(), slots.end(), [&](const ApartSlot& o) { return o.input == one.input; }) > 1;
  });
  if (!any_pair) return {};
  own.statistics = neutral_statistics(section);
  own.bad_records = BadRecordPolicy::skip;
  const auto set = open_set(own, source, width, Log::silent());
  int64_t seen = 0;
  visit_first_rows(*set, [&](const SampleBlock& block, int64_t rows) {
    const int64_t some = std::min(rows, kRowsForTexts - seen);
    for (ApartSlot& one : slots) look_at_texts(block, some, one);
    seen += some;
    return seen < kRowsForTexts;
  });
  std::vector<std::string> notes;
  for (const ApartSlot& item : slots)
    for (const ApartSlot& lists : slots) {
      if (item.lists || !lists.lists || item.input != lists.input || item.texts.size() < kFewTexts) continue;
      const double share = share_of_texts(item, lists);
      if (share < kMostlyEqual) continue;
      notes.push_back(cat(std::round(100 * share), " % of the values of slot '", item.column,
                          "' also occur in the lists of slot '", lists.column,
                          "', but the two slots use different rows, because each slot hashes or numbers its values "
                          "separately; set the same \"key_space\" in both slots to share vectors"));
    }
  return notes;
}

}  // namespace hctr
