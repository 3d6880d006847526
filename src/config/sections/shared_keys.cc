#include "config/sections/shared_keys.h"

#include <algorithm>
#include <functional>
#include <map>

#include "config/json_member.h"
#include "core/base/expect.h"
#include "formats/catalog/format_table.h"

namespace hctr {
namespace {

/// The slot range [first, end) of the sparse input `top`; {0, 0} if there is no such input.
std::pair<int64_t, int64_t> slots_of(const DataSection& data, const std::string& top) {
  int64_t first = 0;
  for (const SparseInput& input : data.sparse) {
    if (input.top == top) return {first, first + input.slot_num};
    first += input.slot_num;
  }
  return {0, 0};
}

/// The reason why no table shares vectors between the slots; empty if some table does.
std::string obstacle(const Config& config, const std::vector<int64_t>& slots) {
  std::string by_slot;
  for (const EmbeddingEntry& embedding : config.embeddings) {
    const auto [first, end] = slots_of(config.data, embedding.section.bottom);
    const auto read = [&, first = first, end = end](int64_t slot) { return first <= slot && slot < end; };
    if (std::count_if(slots.begin(), slots.end(), read) < 2) continue;
    if (!embedding.section.identity_by_slot()) return "";
    by_slot = embedding.pointer;
  }
  return by_slot.empty() ? "no embedding reads two of its slots; put the slots into one sparse input"
                         : cat("rows of the embedding ", by_slot,
                               " are identified by slot and key; set \"identity\": \"key\" in sparse_embedding_hparam "
                               "to share rows");
}

/// Marks the slots that share no key with any other slot, because they hash or number their keys in a key space of
/// their own.
std::vector<bool> have_own_keys(const std::vector<SlotColumns>& groups, bool hashed) {
  std::vector<bool> own;
  for (const SlotColumns& group : groups) {
    const bool made = group.keys ? *group.keys == KeyRule::hash || *group.keys == KeyRule::vocabulary : hashed;
    own.resize(own.size() + group.columns.size(), made && group.key_space.empty());
  }
  return own;
}

/// Adds a note for each table with "identity": "key" whose slots have no keys in common.
void note_keys_of_one_slot(const Config& config, const std::vector<bool>& own, Problems& problems) {
  for (const EmbeddingEntry& embedding : config.embeddings) {
    const auto [first, end] = slots_of(config.data, embedding.section.bottom);
    if (embedding.section.hparam.identity != Identity::key || end - first < 2 ||
        end > static_cast<int64_t>(own.size()) || !std::all_of(own.begin() + first, own.begin() + end, std::identity()))
      continue;
    problems.note(embedding.pointer + "/sparse_embedding_hparam/identity",
                  "equal values of two slots do not share a vector, because each slot hashes or numbers its values "
                  "separately; set the same \"key_space\" in both slots to share vectors");
  }
}

/// The column groups that together are the slots [first, end). Empty if one of these groups also has slots outside that
/// range.
std::vector<SlotColumns*> groups_of(std::vector<SlotColumns>& groups, int64_t first, int64_t end) {
  std::vector<SlotColumns*> found;
  int64_t slot = 0;
  for (SlotColumns& group : groups) {
    const int64_t behind = slot + static_cast<int64_t>(group.columns.size());
    if (slot < end && behind > first) {
      if (slot < first || behind > end) return {};
      found.push_back(&group);
    }
    slot = behind;
  }
  return found;
}

}  // namespace

void share_keys_of_tables(Config& config) {
  const FormatType& format = format_type(config.data.format);
  const std::optional<StatedColumns> columns = format.columns ? format.columns(config.data) : std::nullopt;
  if (!columns) return;
  const bool hashed = config.data.format.name == "Csv";
  const auto has_own_hash = [&](const SlotColumns* group) {
    return group->key_space.empty() && (group->keys ? *group->keys == KeyRule::hash : hashed);
  };
  for (const EmbeddingEntry& embedding : config.embeddings) {
    const std::string& input = embedding.section.bottom;
    const auto [first, end] = slots_of(config.data, input);
    const std::vector<SlotColumns*> groups = groups_of(*columns->slots, first, end);
    const auto is_like_first = [&](const SlotColumns* group) { return group->buckets == groups[0]->buckets; };
    const std::vector<std::string> names = key_spaces_of(*columns->slots);
    if (embedding.section.hparam.identity == Identity::key && end - first >= 2 && !groups.empty() &&
        std::all_of(groups.begin(), groups.end(), has_own_hash) &&
        std::all_of(groups.begin(), groups.end(), is_like_first) &&
        std::find(names.begin(), names.end(), input) == names.end())
      for (SlotColumns* group : groups) group->key_space = input;
  }
}

Json with_key_spaces(const Json& layers, const Config& config) {
  const FormatType& format = format_type(config.data.format);
  DataSection data = config.data;
  const std::optional<StatedColumns> columns = format.columns ? format.columns(data) : std::nullopt;
  const Json* section =
      columns && layers.array() && !layers.array()->empty() ? (*layers.array())[0].find(format.object.name) : nullptr;
  const Json* slots = section ? section->find("slots") : nullptr;
  if (!slots || !slots->array() || slots->array()->size() != columns->slots->size()) return layers;
  Json::Array stated = *slots->array();
  for (size_t i = 0; i < stated.size(); ++i)
    if (const std::string& name = (*columns->slots)[i].key_space;
        !name.empty() && stated[i].object() && !stated[i].find("key_space"))
      stated[i] = with_member(stated[i], "key_space", name);
  Json::Array all = *layers.array();
  all[0] = with_member(all[0], format.object.name, with_member(*section, "slots", std::move(stated)));
  return all;
}

void check_shared_keys(Config& config, Problems& problems) {
  const FormatType& format = format_type(config.data.format);
  const std::optional<StatedColumns> columns = format.columns ? format.columns(config.data) : std::nullopt;
  if (!columns) return;
  note_keys_of_one_slot(config, have_own_keys(*columns->slots, config.data.format.name == "Csv"), problems);
  std::map<std::string, std::vector<int64_t>> spaces;
  int64_t slot = 0;
  for (const std::string& name : key_spaces_of(*columns->slots)) {
    if (!name.empty()) spaces[name].push_back(slot);
    ++slot;
  }
  for (const auto& [name, slots] : spaces) {
    if (slots.size() < 2) continue;
    if (const std::string why = obstacle(config, slots); !why.empty())
      problems.warn(cat("/layers/0/", format.object.name, "/slots"),
                    cat("slots of the key space \"", name, "\" share no vectors: ", why));
  }
}

}  // namespace hctr
