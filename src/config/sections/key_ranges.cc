#include "config/sections/key_ranges.h"

#include <algorithm>
#include <numeric>

#include "core/base/expect.h"

namespace hctr {
namespace {

using Sizes = std::vector<int64_t>;

/// The slot sizes of a sparse input. They come from the Data layer or from an embedding, but not from `except`. Empty
/// if unknown.
Sizes sizes_of(const Config& config, size_t input, const EmbeddingEntry* except) {
  const DataSection& data = config.data;
  const auto slots = static_cast<size_t>(data.sparse[input].slot_num);
  if (static_cast<int64_t>(data.slot_size_array.size()) == data.slots()) {
    int64_t first = 0;
    for (size_t i = 0; i < input; ++i) first += data.sparse[i].slot_num;
    return Sizes(data.slot_size_array.begin() + first,
                 data.slot_size_array.begin() + first + static_cast<int64_t>(slots));
  }
  for (const EmbeddingEntry& entry : config.embeddings)
    if (&entry != except && entry.section.bottom == data.sparse[input].top &&
        entry.section.hparam.slot_size_array.size() == slots)
      return entry.section.hparam.slot_size_array;
  return {};
}

/// Sets the embedding's first key. Returns the reason if that is impossible, else an empty text.
std::string obstacle(const Config& config, size_t input, EmbeddingEntry& entry) {
  const Sizes& own = entry.section.hparam.slot_size_array;
  if (const Sizes other = sizes_of(config, input, &entry); !other.empty() && other != own)
    return cat(
        "\"slot_size_array\" differs from the sizes that another section of the config states for the slots of "
        "\"",
        config.data.sparse[input].top, "\"");
  int64_t first = 0;
  for (size_t before = 0; before < input; ++before) {
    const Sizes sizes = sizes_of(config, before, nullptr);
    if (sizes.empty())
      return cat("the keys of \"", config.data.sparse[input].top, "\" follow those of \"",
                 config.data.sparse[before].top,
                 "\", whose number of keys is unknown; set \"slot_size_array\" of the Data layer");
    first = std::accumulate(sizes.begin(), sizes.end(), first);
  }
  entry.section.first_key = first;
  return "";
}

}  // namespace

void place_keys(Config& config, Problems& problems) {
  for (EmbeddingEntry& entry : config.embeddings) {
    if (!entry.section.direct()) continue;
    const auto& inputs = config.data.sparse;
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const SparseInput& each) { return each.top == entry.section.bottom; });
    if (input == inputs.end() || static_cast<int64_t>(entry.section.hparam.slot_size_array.size()) != input->slot_num)
      continue;  // other checks report this
    const std::string why = obstacle(config, static_cast<size_t>(input - inputs.begin()), entry);
    if (why.empty()) continue;
    const std::string place = entry.pointer + "/sparse_embedding_hparam/slot_size_array";
    if (entry.section.hparam.index == IndexKind::direct)
      problems.error(place, cat("a direct index is not possible: ", why));
    else
      problems.note(place, cat("the table uses a hash index: ", why));
    entry.section.hparam.index = IndexKind::hash;
  }
}

}  // namespace hctr
