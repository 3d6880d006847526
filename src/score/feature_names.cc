#include "score/feature_names.h"

#include "core/base/expect.h"
#include "formats/parquet/parquet_options.h"
#include "formats/text/csv_set.h"

namespace hctr {
namespace {

template <class Groups>
std::vector<std::string> columns_in(const Groups& groups) {
  std::vector<std::string> names;
  for (const auto& group : groups) names.insert(names.end(), group.columns.begin(), group.columns.end());
  return names;
}

std::vector<std::string> numbered(const char* letter, int count) {
  std::vector<std::string> names;
  for (int i = 1; i <= count; ++i) names.push_back(cat(letter, i));
  return names;
}

}  // namespace

FeatureNames feature_names(const DataSection& data) {
  std::vector<std::string> dense, slots;
  if (const CsvOptions* csv = data.options.find<CsvOptions>()) {
    dense = columns_in(csv->dense);
    slots = columns_in(csv->slots);
  } else if (const ParquetOptions* parquet = data.options.find<ParquetOptions>()) {
    dense = columns_in(parquet->dense);
    slots = columns_in(parquet->slots);
  } else if (data.format.name == "Criteo") {
    dense = numbered("I", 13);
    slots = numbered("C", 26);
  }
  FeatureNames names;
  const auto in_config = static_cast<size_t>(data.dense.dense_dim);
  for (size_t d = 0; d < in_config; ++d)
    names.dense.push_back(dense.size() == in_config ? dense[d] : cat(data.dense.top, "[", d, "]"));
  size_t before = 0;
  const bool named = slots.size() == static_cast<size_t>(data.slots());
  for (const SparseInput& input : data.sparse) {
    std::vector<std::string>& of_input = names.slots.emplace_back();
    for (int64_t s = 0; s < input.slot_num; ++s)
      of_input.push_back(named ? slots[before + static_cast<size_t>(s)] : cat(input.top, "[", s, "]"));
    before += static_cast<size_t>(input.slot_num);
  }
  return names;
}

}  // namespace hctr
