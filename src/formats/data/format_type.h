// The declaration of a data format: one entry of the format table (catalog/format_table.cc).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "core/base/log.h"
#include "formats/data/column_section.h"
#include "formats/data/data_section.h"
#include "formats/data/sample_set.h"
#include "formats/data/source.h"

namespace hctr {

/// A format-specific object of the Data layer. An empty name means that the format has no such object.
struct FormatObject {
  std::string name;
  std::function<void(Schema<DataSection>&)> declare;  ///< adds the object to the Data layer's schema
  std::function<bool(const DataSection&)> given;      ///< whether the config has the object
};

/// An object `name` that `schema` reads into DataSection::options. `text`: its description in the manual.
template <class T>
FormatObject format_object(std::string name, Schema<T> schema, std::string text) {
  return {.name = name,
          .declare = [=](Schema<DataSection>& section) { section.part_in(name, &DataSection::options, schema, text); },
          .given = [](const DataSection& section) { return section.options.find<T>() != nullptr; }};
}

/// Sizes and key limits that a section's settings imply. Empty: unknown.
struct StatedWidths {
  std::optional<int64_t> label_dim, dense_dim;
  std::optional<std::vector<int64_t>> nnz;  ///< maximum keys of each slot; 0: unlimited
};

/// The columns of a format whose options T have the members `labels`, `dense` and `slots`.
template <class T>
std::optional<StatedColumns> stated_columns(DataSection& section) {
  if (!section.options.find<T>()) return std::nullopt;
  T& options = section.options.edit<T>();
  return StatedColumns{&options.labels, &options.dense, &options.slots};
}

struct FormatType {
  DataFormat format;
  std::vector<std::string> aliases{};  ///< other names of the format in configs
  std::string source_text;             ///< meaning of `source`, for messages: "the path of a file list"
  /// Lists the data files of `source`: the file itself, or the files in a list. Null: `source` does not name files.
  std::vector<fs::path> (*files)(const fs::path& source, const Log&) = nullptr;
  bool lines_of_text = false;  ///< whether each record is a line of text; required for records from a Kafka topic
  FormatObject object{};
  /// Called for every section before its format is looked up. Selects this format if fields of the section other than
  /// "format" imply it. May be null.
  void (*complete)(DataSection&, const std::string& pointer, Problems&) = nullptr;
  /// The column lists in the section's object. May be null.
  std::optional<StatedColumns> (*columns)(DataSection&) = nullptr;
  /// The sizes that the section implies. Null: the sizes are derived from `columns`.
  StatedWidths (*widths)(const DataSection&) = nullptr;
  /// Format-specific checks of a section.
  void (*check)(const DataSection&, const std::string& pointer, Problems&) = nullptr;
  /// Opens the data set. Errors: Error(io), Error(data) for files that are missing or contradict the section.
  std::unique_ptr<SampleSet> (*open)(const DataSection&, const Source&, KeyWidth, const Log&) = nullptr;
};

}  // namespace hctr
