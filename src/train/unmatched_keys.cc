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

std::string share_text(double share) { return formatted("%.3g %%", 100 * share); }

using Share = double (SlotMatches::*)() const;

/// "user_id 37.5 %, city 2 %", from the largest share on, without slots that have none.
std::string text_of_shares(const std::vector<SlotMatches>& slots, Share share, size_t most) {
  std::vector<SlotMatches> some;
  for (const SlotMatches& slot : slots)
    if ((slot.*share)() > 0) some.push_back(slot);
  std::stable_sort(some.begin(), some.end(),
                   [&](const SlotMatches& a, const SlotMatches& b) { return (a.*share)() > (b.*share)(); });
  std::string text;
  for (size_t i = 0; i < std::min(most, some.size()); ++i)
    text += cat(text.empty() ? "" : ", ", some[i].slot, " ", share_text((some[i].*share)()));
  if (some.size() > most) text += cat(", and ", some.size() - most, " more slots");
  return text.empty() ? "none" : text;
}

bool any_of(const std::vector<SlotMatches>& slots, bool SlotMatches::*which) {
  return std::any_of(slots.begin(), slots.end(), [&](const SlotMatches& slot) { return slot.*which; });
}

Json json_of_shares(const std::vector<SlotMatches>& slots, bool SlotMatches::*which, Share share) {
  Json shares(Json::Object{});
  for (const SlotMatches& slot : slots)
    if (slot.*which) shares.set(slot.slot, (slot.*share)());
  return shares;
}

}  // namespace

KeyMatches::KeyMatches(const Config& config, Communicator& comm, Model& model,
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

std::string describe(const std::vector<SlotMatches>& slots, size_t most) {
  return text_of_shares(slots, &SlotMatches::share, most);
}
std::string describe_unlisted(const std::vector<SlotMatches>& slots, size_t most) {
  return text_of_shares(slots, &SlotMatches::unlisted_share, most);
}

std::vector<std::string> lines_of(const std::vector<SlotMatches>& slots) {
  std::vector<std::string> lines;
  if (any_of(slots, &SlotMatches::has_rows)) lines.push_back(cat("keys without a row in the model: ", describe(slots)));
  if (any_of(slots, &SlotMatches::has_vocabulary))
    lines.push_back(cat("values that the vocabulary lacks: ", describe_unlisted(slots)));
  if (any_of(slots, &SlotMatches::of_groups))
    lines.push_back(cat("samples without a group, which GroupedAUC leaves out: ",
                        text_of_shares(slots, &SlotMatches::without_group_share, 1)));
  return lines;
}

void add_matches(const std::vector<SlotMatches>& slots, Json& object) {
  object.set("unmatched_keys", json_of_shares(slots, &SlotMatches::has_rows, &SlotMatches::share));
  if (any_of(slots, &SlotMatches::has_vocabulary))
    object.set("unlisted_values", json_of_shares(slots, &SlotMatches::has_vocabulary, &SlotMatches::unlisted_share));
  if (any_of(slots, &SlotMatches::of_groups))
    object.set("without_group", json_of_shares(slots, &SlotMatches::of_groups, &SlotMatches::without_group_share));
}

void warn_of_unmatched(const std::vector<SlotMatches>& slots, const std::string& of, const Log& log) {
  const auto large = [&](Share share) {
    std::vector<SlotMatches> some;
    for (const SlotMatches& slot : slots)
      if ((slot.*share)() > kUnmatchedToWarn) some.push_back(slot);
    return some;
  };
  if (const auto some = large(&SlotMatches::share); !some.empty())
    log.warning("most keys of ", some.size() == 1 ? "a slot" : "some slots", " of ", of,
                " have no row, as training has not seen them, and count as zero vectors: ", describe(some));
  if (const auto some = large(&SlotMatches::unlisted_share); !some.empty())
    log.warning("most values of ", some.size() == 1 ? "a slot" : "some slots", " of ", of,
                " are not in its vocabulary, and share one key: ", describe_unlisted(some));
  if (const auto some = large(&SlotMatches::without_group_share); !some.empty())
    log.warning("most samples of ", of, " have no group, and GroupedAUC leaves them out: ",
                text_of_shares(some, &SlotMatches::without_group_share, 1));
}

void expect_matches(const std::vector<SlotMatches>& slots, const std::string& data) {
  std::string none, unlisted;
  for (const SlotMatches& slot : slots) {
    if (slot.values >= kUnmatchedToFail && slot.unlisted == slot.values)
      unlisted += cat(unlisted.empty() ? "" : ", ", slot.slot, " (", slot.values, " values)");
    else if (slot.keys >= kUnmatchedToFail && slot.unmatched == slot.keys)
      none += cat(none.empty() ? "" : ", ", slot.slot, " (", slot.keys, " keys)");
  }
  if (!unlisted.empty())
    throw Error(Kind::data,
                cat("'", data, "': the vocabulary of a slot has none of its values: ", unlisted,
                    ". Are they written otherwise than in the file of the vocabulary? Add --unmatched allow "
                    "to score them all the same, as one key"));
  if (none.empty()) return;
  throw Error(
      Kind::data,
      cat("'", data, "': no key of a slot has a row in the model, so training has seen none of its values: ", none,
          ". Are the values written otherwise than in the training data, as 1.0 instead of 1? "
          "Add --unmatched allow to score them all the same, as zero vectors"));
}

}  // namespace hctr
