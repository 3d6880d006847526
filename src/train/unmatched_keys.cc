#include "train/unmatched_keys.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/progress.h"
#include "train/feature_names.h"

namespace hctr {
namespace {

/// A key of a slot and how often it occurs; sent between ranks as bytes.
struct CountedKey {
  int64_t key = 0, times = 0;
  int32_t slot = 0, unused = 0;
};

std::string bytes_of(const std::vector<CountedKey>& keys) {
  return {reinterpret_cast<const char*>(keys.data()), keys.size() * sizeof(CountedKey)};
}
void append(const std::string& bytes, std::vector<CountedKey>& to) {
  const size_t before = to.size();
  to.resize(before + bytes.size() / sizeof(CountedKey));
  if (!bytes.empty()) std::memcpy(to.data() + before, bytes.data(), bytes.size());
}

/// Sorts by slot and key, and makes one of equal ones.
void unite(std::vector<CountedKey>& keys) {
  std::sort(keys.begin(), keys.end(), [](const CountedKey& a, const CountedKey& b) {
    return std::pair(a.slot, a.key) < std::pair(b.slot, b.key);
  });
  size_t end = 0;
  for (const CountedKey& one : keys)
    if (end > 0 && keys[end - 1].slot == one.slot && keys[end - 1].key == one.key)
      keys[end - 1].times += one.times;
    else
      keys[end++] = one;
  keys.resize(end);
}

std::string percent(double share) { return formatted("%.3g %%", 100 * share); }

}  // namespace

KeyMatches::KeyMatches(const Config& config, Communicator& comm, Model& model) : comm_(comm), model_(model) {
  const FeatureNames names = feature_names(config.data);
  for (size_t i = 0; i < config.data.sparse.size(); ++i) {
    Input input{.index = i, .tables = {}, .slots = names.slots[i], .keys = {}};
    for (size_t e = 0; e < config.embeddings.size(); ++e)
      if (const EmbeddingSection& table = config.embeddings[e].section;
          table.bottom == config.data.sparse[i].top && !table.direct())
        input.tables.push_back(e);
    input.keys.resize(input.slots.size());
    if (!input.tables.empty()) inputs_.push_back(std::move(input));
  }
  clear();
}

void KeyMatches::clear() {
  for (Input& input : inputs_)
    for (std::vector<int64_t>& keys : input.keys) keys.clear();
  kept_ = batches_ = 0;
  every_ = 1;
  most_ = kMostKeys / comm_.size();
}

void KeyMatches::add(const BatchView& batch, int64_t rows) {
  if (batches_++ % every_ != 0) return;
  const int64_t samples = batch.layout->shape.samples;
  for (Input& input : inputs_) {
    const BatchView::Table& table = batch.tables[input.index];
    for (size_t s = 0; s < input.keys.size(); ++s) {
      const int64_t first = static_cast<int64_t>(s) * samples, begin = table.offset(first),
                    end = table.offset(first + rows);
      for (int64_t k = begin; k < end; ++k) input.keys[s].push_back(table.key(k));
      kept_ += end - begin;
    }
  }
  if (kept_ < most_) return;
  every_ *= 2;
  most_ += kMostKeys / comm_.size();
}

std::vector<SlotMatches> KeyMatches::count() {
  std::vector<SlotMatches> all;
  for (const Input& input : inputs_)
    for (SlotMatches& slot : count(input)) all.push_back(std::move(slot));
  return all;
}

std::vector<SlotMatches> KeyMatches::count(const Input& input) {
  std::vector<CountedKey> keys;
  for (size_t s = 0; s < input.keys.size(); ++s)
    for (const int64_t key : input.keys[s]) keys.push_back({.key = key, .times = 1, .slot = static_cast<int32_t>(s)});
  unite(keys);
  if (comm_.size() > 1) {
    const auto others = comm_.gather(comm_.rank() == 0 ? "" : bytes_of(keys), 0);
    for (size_t r = 1; r < others.size(); ++r) append(others[r], keys);
    unite(keys);
    const std::string sent = comm_.broadcast(comm_.rank() == 0 ? bytes_of(keys) : "", 0);
    keys.clear();
    append(sent, keys);
  }
  std::vector<SlotKey> wanted;
  for (const CountedKey& one : keys) wanted.emplace_back(one.slot, one.key);
  std::vector<uint8_t> in_all(keys.size(), 1);
  for (const size_t table : input.tables) {
    std::vector<uint8_t> found = model_.have_rows(table, wanted);
    if (comm_.size() > 1) {
      const auto flags = comm_.gather({reinterpret_cast<const char*>(found.data()), found.size()}, 0);
      for (const std::string& of_rank : flags)
        for (size_t k = 0; k < of_rank.size(); ++k) found[k] |= of_rank[k] != 0;
      const std::string sent = comm_.broadcast({reinterpret_cast<const char*>(found.data()), found.size()}, 0);
      found.assign(sent.begin(), sent.end());
    }
    for (size_t k = 0; k < found.size(); ++k) in_all[k] &= found[k];
  }
  std::vector<SlotMatches> slots;
  for (const std::string& name : input.slots) slots.push_back({.slot = name});
  for (size_t k = 0; k < keys.size(); ++k) {
    SlotMatches& slot = slots[static_cast<size_t>(keys[k].slot)];
    slot.keys += keys[k].times;
    if (!in_all[k]) slot.unmatched += keys[k].times;
  }
  return slots;
}

std::string describe(const std::vector<SlotMatches>& slots, size_t most) {
  std::vector<SlotMatches> some;
  for (const SlotMatches& slot : slots)
    if (slot.unmatched > 0) some.push_back(slot);
  std::stable_sort(some.begin(), some.end(),
                   [](const SlotMatches& a, const SlotMatches& b) { return a.share() > b.share(); });
  std::string text;
  for (size_t i = 0; i < std::min(most, some.size()); ++i)
    text += cat(text.empty() ? "" : ", ", some[i].slot, " ", percent(some[i].share()));
  if (some.size() > most) text += cat(", and ", some.size() - most, " more slots");
  if (text.empty()) return "none";
  return text;
}

Json to_json(const std::vector<SlotMatches>& slots) {
  Json shares(Json::Object{});
  for (const SlotMatches& slot : slots) shares.set(slot.slot, slot.share());
  return shares;
}

void warn_of_unmatched(const std::vector<SlotMatches>& slots, const std::string& of, const Log& log) {
  std::vector<SlotMatches> large;
  for (const SlotMatches& slot : slots)
    if (slot.share() > kUnmatchedToWarn) large.push_back(slot);
  if (large.empty()) return;
  log.warning("most keys of ", large.size() == 1 ? "a slot" : "some slots", " of ", of,
              " have no row, as training has not seen them, and count as zero vectors: ", describe(large));
}

void expect_matches(const std::vector<SlotMatches>& slots, const std::string& data) {
  std::string none;
  for (const SlotMatches& slot : slots)
    if (slot.keys >= kUnmatchedToFail && slot.unmatched == slot.keys)
      none += cat(none.empty() ? "" : ", ", slot.slot, " (", slot.keys, " keys)");
  if (none.empty()) return;
  throw Error(
      Kind::data,
      cat("'", data, "': no key of a slot has a row in the model, so training has seen none of its values: ", none,
          ". Are the values written otherwise than in the training data, as 1.0 instead of 1? "
          "Add --unmatched allow to score them all the same, as zero vectors"));
}

}  // namespace hctr
