#include "formats/catalog/slot_rules_of.h"

#include <algorithm>

#include "formats/parquet/parquet_options.h"
#include "formats/text/csv_set.h"

namespace hctr {

std::vector<SlotRule> slot_rules_of(const DataSection& section) {
  const auto any = [](const std::vector<SlotColumns>& groups) {
    return std::any_of(groups.begin(), groups.end(),
                       [](const SlotColumns& group) { return group.keys == KeyRule::vocabulary; });
  };
  if (!section.feature_spec.empty()) return {};
  const CsvOptions* csv = section.format.name == "Csv" ? section.options.find<CsvOptions>() : nullptr;
  if (csv && any(csv->slots)) return slot_rules(csv->slots, csv->hash_seed, csv_grammar(*csv));
  const ParquetOptions* parquet = section.format.name == "Parquet" ? section.options.find<ParquetOptions>() : nullptr;
  if (parquet && any(parquet->slots)) return slot_rules(parquet->slots, parquet->hash_seed, TextGrammar{});
  return {};
}

}  // namespace hctr
