#include "formats/catalog/format_table.h"

#include "core/base/expect.h"
#include "formats/features/feature_set.h"
#include "formats/norm/norm_set.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "formats/text/criteo_set.h"
#include "formats/text/csv_set.h"

namespace hctr {

const std::vector<FormatType>& format_types() {
  static const std::vector<FormatType> types = {norm_format(),   raw_format(), parquet_format(),
                                                criteo_format(), csv_format(), feature_format()};
  return types;
}

const FormatType& format_type(DataFormat format) {
  for (const FormatType& type : format_types())
    if (type.format == format) return type;
  HCTR_EXPECT(false, "the table of formats has no row for the format: ", format.name);
}

Misfit read_value(const Json& value, const Range&, DataFormat& out) {
  std::vector<std::string> words;
  std::vector<DataFormat> meanings;
  for (const FormatType& type : format_types()) {
    words.emplace_back(type.format.name);
    words.insert(words.end(), type.aliases.begin(), type.aliases.end());
    meanings.resize(words.size(), type.format);
  }
  size_t index = 0;
  std::string expected = read_word(value, words, index);
  if (expected.empty()) out = meanings[index];
  return expected;
}

}  // namespace hctr
