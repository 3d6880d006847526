#include "formats/catalog/unshared_slot.h"

#include "core/base/expect.h"
#include "formats/catalog/format_table.h"
#include "formats/text/criteo_set.h"

namespace hctr {

std::optional<size_t> add_unshared_slot(DataSection& section, size_t input, int64_t slot) {
  const FormatType& format = format_type(section.format);
  const auto columns = format.columns ? format.columns(section) : std::nullopt;
  if (!columns) return std::nullopt;
  const SparseInput& shared = section.sparse[input];
  auto at = static_cast<size_t>(slot);
  for (size_t i = 0; i < input; ++i) at += static_cast<size_t>(int64_t{section.sparse[i].slot_num});
  for (const SlotColumns& group : *columns->slots) {
    if (at >= group.columns.size()) {
      at -= group.columns.size();
      continue;
    }
    const bool vocabulary = group.keys == KeyRule::vocabulary;
    if (!vocabulary && group.buckets == 0) return std::nullopt;
    SlotColumns own = group;
    own.columns = {group.columns[at]};
    own.buckets = 0;
    own.vocabulary.clear();
    if (vocabulary) own.keys = KeyRule::hash;
    SparseInput added;
    added.top = shared.top + " for groups";
    added.slot_num = 1;
    added.nnz_per_slot = PerSlot{{shared.limits().most_of(slot)}};
    added.keep_first = shared.keep_first;
    added.keep_last = shared.keep_last;
    columns->slots->push_back(std::move(own));
    section.sparse.push_back(std::move(added));
    return section.sparse.size() - 1;
  }
  return std::nullopt;
}

std::string why_shared(const DataSection& section) {
  if (section.format != kCriteoFormat) return "";
  const auto& criteo = section.options.get<CriteoTextOptions>();
  if (criteo.buckets > 0) return cat("\"buckets\" of \"criteo\" limits each column to ", criteo.buckets, " keys");
  return criteo.key_bits == 32 ? "\"key_bits\" of \"criteo\" is 32" : "";
}

}  // namespace hctr
