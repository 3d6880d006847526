// The declaration of a data format: one row of the table of formats (formats/format_table.cc).
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

/// An object of the Data layer for one format alone. Without a name there is none.
struct FormatObject {
  std::string name;
  std::function<void(Schema<DataSection>&)> declare;  ///< adds the object to the schema of the Data layer
  std::function<bool(const DataSection&)> given;      ///< whether the config has the object
};

/// The object `name`, read by `schema` into DataSection::options. `text`: its sentence in the manual.
template <class T>
FormatObject format_object(std::string name, Schema<T> schema, std::string text) {
  return {.name = name,
          .declare = [=](Schema<DataSection>& section) { section.part_in(name, &DataSection::options, schema, text); },
          .given = [](const DataSection& section) { return section.options.find<T>() != nullptr; }};
}

/// Widths and limits on keys that follow from what a section says of its data. Nothing: unknown.
struct StatedWidths {
  std::optional<int64_t> label_dim, dense_dim;
  std::optional<std::vector<int64_t>> nnz;  ///< maximum keys of each slot; 0: any number
};

/// For a format whose options T have `labels`, `dense` and `slots`.
template <class T>
std::optional<StatedColumns> stated_columns(DataSection& section) {
  if (!section.options.find<T>()) return std::nullopt;
  T& options = section.options.edit<T>();
  return StatedColumns{&options.labels, &options.dense, &options.slots};
}

struct FormatType {
  DataFormat format;
  std::vector<std::string> aliases{};  ///< other words that a config may have for `format`
  std::string source_text;             ///< meaning of `source`, for messages: "the path of a file list"
  /// The data files that a path names: the file itself, or the files of a list. Null: `source` names no file.
  std::vector<fs::path> (*files)(const fs::path& source, const Log&) = nullptr;
  FormatObject object{};
  /// Called for every section before its format is looked up: a format that other fields select sets it here. May be
  /// null.
  void (*complete)(DataSection&, const std::string& pointer, Problems&) = nullptr;
  /// The lists of columns that the section's object states. May be null.
  std::optional<StatedColumns> (*columns)(DataSection&) = nullptr;
  /// Null: what `columns` gives.
  StatedWidths (*widths)(const DataSection&) = nullptr;
  /// Rules of a section of this format, beyond those of all.
  void (*check)(const DataSection&, const std::string& pointer, Problems&) = nullptr;
  /// Errors: Error(io), Error(data) for files that are missing or not as the section says.
  std::unique_ptr<SampleSet> (*open)(const DataSection&, const Source&, KeyWidth, const Log&) = nullptr;
};

}  // namespace hctr
