#include "score/key_matches.h"

#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "score/feature_names.h"

namespace hctr {
namespace {

/// A key of a slot and its number of occurrences. Ranks exchange it as raw bytes.
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

/// Sorts by slot and key, and merges equal entries.
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

}  // namespace

KeyMatches::KeyMatches(const Config& config, Communicator& comm, Replica& model,
                       std::optional<std::pair<size_t, int64_t>> groups)
    : comm_(comm), model_(model) {
  const FeatureNames names = feature_names(config.data);
  const std::vector<std::optional<int64_t>> unlisted = unlisted_keys(config.data);
  for (size_t i = 0, slot = 0; i < config.data.sparse.size(); ++i) {
    const std::string& top = config.data.sparse[i].top;
    Input input{.index = i, .tables = {}, .slots = {}, .unlisted = {}, .keys = {}};
    for (size_t e = 0; e < config.embeddings.size(); ++e)
      if (const EmbeddingSection& table = config.embeddings[e].section; table.bottom == top && !table.direct())
        input.tables.push_back(e);
    bool any = !input.tables.empty();
    for (size_t s = 0; s < names.slots[i].size(); ++s, ++slot) {
      input.unlisted.push_back(slot < unlisted.size() ? unlisted[slot] : std::nullopt);
      input.slots.push_back({.slot = names.slots[i][s],
                             .has_rows = !input.tables.empty(),
                             .has_vocabulary = input.unlisted.back().has_value(),
                             .of_groups = groups == std::pair(i, static_cast<int64_t>(s))});
      any = any || input.slots.back().has_vocabulary || input.slots.back().of_groups;
    }
    input.keys.resize(input.slots.size());
    if (any) inputs_.push_back(std::move(input));
  }
  clear();
}

void KeyMatches::clear() {
  for (Input& input : inputs_) {
    for (std::vector<int64_t>& keys : input.keys) keys.clear();
    for (SlotMatches& slot : input.slots) slot.values = slot.unlisted = slot.samples = slot.without_group = 0;
  }
  kept_ = batches_ = 0;
  every_ = 1;
  most_ = kMostKeys / comm_.size();
}

void KeyMatches::count_values(const BatchView& batch, const BatchView::Table& table, int64_t rows, Input& input) {
  for (size_t s = 0; s < input.slots.size(); ++s) {
    SlotMatches& slot = input.slots[s];
    const int64_t first = static_cast<int64_t>(s) * batch.layout->shape.samples;
    if (slot.has_vocabulary) {
      const int64_t begin = table.offset(first), end = table.offset(first + rows);
      for (int64_t k = begin; k < end; ++k) slot.unlisted += table.key(k) == *input.unlisted[s];
      slot.values += end - begin;
    }
    if (!slot.of_groups) continue;
    for (int64_t r = first; r < first + rows; ++r) slot.without_group += table.offset(r) == table.offset(r + 1);
    slot.samples += rows;
  }
}

void KeyMatches::add(const BatchView& batch, int64_t rows) {
  for (Input& input : inputs_) count_values(batch, batch.tables[input.index], rows, input);
  if (batches_++ % every_ != 0) return;
  const int64_t samples = batch.layout->shape.samples;
  for (Input& input : inputs_) {
    if (input.tables.empty()) continue;
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
    for (SlotMatches& slot : count(input))
      if (slot.has_rows || slot.has_vocabulary || slot.of_groups) all.push_back(std::move(slot));
  add_up(all);
  return all;
}

void KeyMatches::add_up(std::vector<SlotMatches>& slots) {
  if (comm_.size() == 1) return;
  std::vector<int64_t> counts;
  for (const SlotMatches& slot : slots)
    counts.insert(counts.end(), {slot.values, slot.unlisted, slot.samples, slot.without_group});
  const auto bytes = [&] {
    return std::string(reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof(int64_t));
  };
  const auto take = [&](const std::string& from, bool add) {
    for (size_t i = 0; i < counts.size(); ++i) {
      int64_t count = 0;
      std::memcpy(&count, from.data() + i * sizeof count, sizeof count);
      counts[i] = count + (add ? counts[i] : 0);
    }
  };
  const auto others = comm_.gather(comm_.rank() == 0 ? "" : bytes(), 0);
  for (size_t r = 1; r < others.size(); ++r) take(others[r], true);
  take(comm_.broadcast(comm_.rank() == 0 ? bytes() : "", 0), false);
  for (size_t s = 0; s < slots.size(); ++s) {
    slots[s].values = counts[4 * s];
    slots[s].unlisted = counts[4 * s + 1];
    slots[s].samples = counts[4 * s + 2];
    slots[s].without_group = counts[4 * s + 3];
  }
}

std::vector<SlotMatches> KeyMatches::count(const Input& input) {
  std::vector<SlotMatches> slots = input.slots;
  if (input.tables.empty()) return slots;
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
  for (size_t k = 0; k < keys.size(); ++k) {
    SlotMatches& slot = slots[static_cast<size_t>(keys[k].slot)];
    slot.keys += keys[k].times;
    if (!in_all[k]) slot.unmatched += keys[k].times;
  }
  return slots;
}

}  // namespace hctr
