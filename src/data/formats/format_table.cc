#include "data/formats/format_table.h"

#include "base/error.h"
#include "data/features/feature_section.h"
#include "data/features/feature_set.h"
#include "data/norm/norm_set.h"
#include "data/parquet/parquet_set.h"
#include "data/raw/raw_set.h"
#include "data/text/criteo_set.h"
#include "data/text/csv_set.h"

namespace hctr {
namespace {

void check_norm_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  const auto sizes = static_cast<int64_t>(section.slot_size_array.size());
  if (sizes != 0 && sizes != section.slots())
    problems.warn(pointer + "/slot_size_array",
                  cat("has ", sizes, " numbers for ", section.slots(), " slots; Norm data does not need it"));
}

}  // namespace

const std::vector<FormatType>& format_types() {
  static const std::vector<FormatType> types = {
      {DataFormat::norm, {"Norm"}, "the path of a file list", check_norm_section, open_norm_set},
      {DataFormat::raw,
       {"Raw", "RawAsync"},
       "the path of a data file or of a file list",
       check_raw_section,
       open_raw_set},
      {DataFormat::parquet,
       {"Parquet"},
       "the path of a file list or of a data file",
       check_parquet_section,
       open_parquet_set},
      {DataFormat::criteo,
       {"Criteo"},
       "the path of a text file or of a file list",
       check_criteo_section,
       open_criteo_set},
      {DataFormat::csv, {"Csv"}, "the path of a text file or of a file list", check_csv_section, open_csv_set},
      {DataFormat::features,
       {"FeatureSpec"},
       "a mapping of the feature specification",
       check_feature_section,
       open_feature_set},
  };
  return types;
}

const FormatType& format_type(DataFormat format) {
  for (const FormatType& type : format_types())
    if (type.format == format) return type;
  HCTR_EXPECT(false, "a format without its row in the table");
}

const std::vector<std::pair<std::string, DataFormat>>& EnumWords<DataFormat>::table() {
  static const auto words = [] {
    std::vector<std::pair<std::string, DataFormat>> all;
    for (const FormatType& type : format_types())
      for (const std::string& word : type.words) all.emplace_back(word, type.format);
    return all;
  }();
  return words;
}

}  // namespace hctr
