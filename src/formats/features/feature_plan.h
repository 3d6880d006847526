// The plan for reading one mapping of a feature specification: its files, their columns, and the field of a sample that
// each column sets.
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

/// A column of a chunk and the field of a sample that the column sets.
struct FeatureField {
  enum class To { label, dense, slot, column };  ///< column: FeatureRows reads the stored value
  FeatureColumn feature;
  size_t place = 0;  ///< CSV chunk: cell index; binary chunk: byte offset in the row
  To to = To::slot;
  int64_t index = 0;                                    ///< index of the label, dense value, slot or column
  int64_t limit = std::numeric_limits<int64_t>::max();  ///< slot only: exclusive upper bound of the ids
  int64_t more = 0;                                     ///< slot only: added to each id
};

/// A chunk of the specification whose columns are read.
struct FeatureGroup {
  FeatureChunk::Kind kind = FeatureChunk::Kind::csv;
  std::vector<fs::path> files;
  size_t width = 0;           ///< cells per line, or bytes per row
  std::vector<int64_t> rows;  ///< binary chunk: number of rows in each file
  std::vector<FeatureField> fields;

  bool binary() const { return kind == FeatureChunk::Kind::split_binary; }
};

struct FeaturePlan {
  std::string mapping;
  int64_t label_dim = 0, dense_dim = 0, slots = 0;
  std::vector<FeatureGroup> groups;
  std::optional<int64_t> rows;  ///< rows of the mapping; known if some chunk is binary
  /// A label without a column in the mapping, with the value for all samples.
  struct MissingLabel {
    std::string feature;
    int64_t index = 0;
    float value = 0;
  };
  std::vector<MissingLabel> missing_labels{};
};

/// Plans how to read the mapping Source::path for a Data section. Chunks without used columns are not opened. Errors:
/// Error(config) for a specification that does not fit the section; Error(io) for missing files; Error(data) if a file
/// size is not a multiple of the row size, or binary chunks have different lengths.
FeaturePlan plan_features(const DataSection&, const Source&);
/// Plans how to read the features `wanted` (indices in the specification) as columns 0, 1, ... Errors: those of
/// plan_features().
FeaturePlan plan_columns(const FeatureSpec&, const std::string& mapping, const std::vector<size_t>& wanted);

}  // namespace hctr
