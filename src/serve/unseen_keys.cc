#include "serve/unseen_keys.h"

#include <utility>

#include "hctr/error.h"
#include "score/feature_names.h"

namespace hctr::serve {

UnseenKeys::UnseenKeys(ServedModel& model) : model_(model) {
  const Config& config = model.config();
  const FeatureNames names = feature_names(config.data);
  for (size_t i = 0; i < config.data.sparse.size(); ++i) {
    Input& input = inputs_.emplace_back();
    for (size_t e = 0; e < config.embeddings.size(); ++e)
      if (const EmbeddingSection& table = config.embeddings[e].section;
          table.bottom == config.data.sparse[i].top && !table.direct())
        input.tables.push_back(e);
    for (const std::string& name : names.slots[i]) input.slots.push_back({.name = name});
  }
}

void UnseenKeys::add(const SampleArrays& samples) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // count() may wait for a level of a store: requests must not wait with it
  if (calls_++ % kEvery != 0) return;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].tables.empty()) continue;
    const SampleArrays::Keys& keys = samples.inputs[i];
    const int64_t* const all = keys.given ? keys.given.get() : keys.keys.data();
    for (int64_t bag = 0; bag < samples.samples * keys.slots && kept_ < kMostKeys; ++bag) {
      const int64_t begin = keys.given ? bag : keys.offsets[static_cast<size_t>(bag)];
      const int64_t end = keys.given ? bag + 1 : keys.offsets[static_cast<size_t>(bag) + 1];
      for (int64_t k = begin; k < end; ++k, ++kept_)
        inputs_[i].kept.emplace_back(static_cast<int32_t>(bag % keys.slots), all[k]);
    }
  }
}

std::vector<UnseenKeys::Slot> UnseenKeys::count() {
  const std::lock_guard lock(mutex_);
  std::vector<Slot> all;
  for (Input& input : inputs_) {
    if (input.tables.empty()) continue;
    const auto keys = std::exchange(input.kept, {});
    try {
      std::vector<uint8_t> seen(keys.size(), 1);
      for (const size_t table : input.tables) {
        const std::vector<uint8_t> found = model_.have_rows(table, keys);
        for (size_t k = 0; k < found.size(); ++k) seen[k] &= found[k];
      }
      for (size_t k = 0; k < seen.size(); ++k) {
        Slot& slot = input.slots[static_cast<size_t>(keys[k].first)];
        slot.keys += 1;
        slot.unseen += seen[k] == 0;
      }
    } catch (const Error&) {
      // The error is ignored here: the store's statistics count it.
    }
    all.insert(all.end(), input.slots.begin(), input.slots.end());
  }
  kept_ = 0;
  return all;
}

}  // namespace hctr::serve
