// How to read one mapping of a feature specification: its files, their columns, and the field each column becomes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "formats/data/data_section.h"
#include "formats/data/source.h"
#include "formats/features/feature_spec.h"

namespace hctr {

/// A column of a chunk, and the field of a sample it becomes.
struct FeatureField {
  enum class To { label, dense, slot, column };  ///< column: the stored value, for FeatureRows
  FeatureColumn feature;
  size_t place = 0;  ///< CSV chunk: index of the cell; binary chunk: byte offset in the row
  To to = To::slot;
  int64_t index = 0;                                    ///< index of the label, dense value, slot or column
  int64_t limit = std::numeric_limits<int64_t>::max();  ///< slot only: ids are below this
  int64_t more = 0;                                     ///< slot only: added to the ids
};

/// A chunk with columns of a sample.
struct FeatureGroup {
  FeatureChunk::Kind kind = FeatureChunk::Kind::csv;
  std::vector<fs::path> files;
  size_t width = 0;           ///< cells of a line, or bytes of a row
  std::vector<int64_t> rows;  ///< binary chunk: number of rows of each file
  std::vector<FeatureField> fields;

  bool binary() const { return kind == FeatureChunk::Kind::split_binary; }
};

struct FeaturePlan {
  std::string mapping;
  int64_t label_dim = 0, dense_dim = 0, slots = 0;
  std::vector<FeatureGroup> groups;
  std::optional<int64_t> rows;  ///< rows of the mapping; known if it has a binary chunk
  /// A label that the mapping may lack: each sample has this value.
  struct MissingLabel {
    std::string feature;
    int64_t index = 0;
    float value = 0;
  };
  std::vector<MissingLabel> missing_labels{};
};

/// Plans the reading of the mapping Source::path for a Data section. Chunks without a used column are not opened.
/// Errors: Error(config) for a specification that does not fit the section; Error(io) for missing files; Error(data)
/// for a size that is not a whole number of rows, and for binary chunks of different lengths.
FeaturePlan plan_features(const DataSection&, const Source&);
/// Plans the reading of the features `wanted` (indices into the specification's) as columns 0, 1, ... Errors: as above.
FeaturePlan plan_columns(const FeatureSpec&, const std::string& mapping, const std::vector<size_t>& wanted);

}  // namespace hctr
