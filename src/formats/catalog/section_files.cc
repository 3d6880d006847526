#include "formats/catalog/section_files.h"

#include <string>

#include "core/base/expect.h"
#include "formats/catalog/format_table.h"
#include "formats/features/feature_spec.h"

namespace hctr {
namespace {

void add_files_of_source(const DataSection& section, const std::string& source, std::vector<fs::path>& files) {
  const auto list = format_type(section.format).files;
  if (source.empty() || !list) return;
  std::error_code none;
  if (!fs::is_directory(source, none)) files.emplace_back(source);  // a folder itself is not a data file
  try {
    const std::vector<fs::path> listed = list(source, Log::silent());
    files.insert(files.end(), listed.begin(), listed.end());
  } catch (const Error&) {  // the data reader reports the error
  }
}

void add_files_of_features(const std::string& spec, std::vector<fs::path>& files) {
  if (spec.empty()) return;
  files.emplace_back(spec);
  try {
    const FeatureSpec read = read_feature_spec(spec);
    for (const FeatureSource& source : read.sources)
      for (const FeatureChunk& chunk : source.chunks) files.insert(files.end(), chunk.files.begin(), chunk.files.end());
  } catch (const Error&) {  // the data reader reports the error
  }
}

}  // namespace

std::vector<fs::path> files_of_section(const DataSection& given) {
  std::vector<fs::path> files;
  DataSection section = given;
  for (const std::string& source : {section.source, section.eval_source}) add_files_of_source(section, source, files);
  add_files_of_features(section.feature_spec, files);
  const auto columns = format_type(section.format).columns;
  if (const auto stated = columns ? columns(section) : std::nullopt)
    for (const SlotColumns& slot : *stated->slots)
      if (!slot.vocabulary.empty()) files.emplace_back(slot.vocabulary);
  return files;
}

}  // namespace hctr
