// How to read the samples of one mapping of a feature specification: its files, their columns, and what these become.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/data_section.h"
#include "data/features/feature_spec.h"

namespace hctr {

/// A column of a chunk, and its place in a sample.
struct FeatureField {
  enum class To { label, dense, slot, column };  ///< column: as it is stored, for FeatureRows
  FeatureColumn feature;
  size_t place = 0;  ///< of a csv chunk: the cell; of a binary one: the offset in the row
  To to = To::slot;
  int64_t index = 0;                                    ///< of the label, dense value, slot or column
  int64_t limit = std::numeric_limits<int64_t>::max();  ///< of a slot: ids are below it
  int64_t more = 0;                                     ///< of a slot: added to the ids
};

/// A chunk that holds columns of a sample.
struct FeatureGroup {
  FeatureChunk::Kind kind = FeatureChunk::Kind::csv;
  std::vector<fs::path> files;
  size_t width = 0;           ///< cells of a line, or bytes of a row
  std::vector<int64_t> rows;  ///< of a binary chunk: of each file
  std::vector<FeatureField> fields;

  bool binary() const { return kind == FeatureChunk::Kind::split_binary; }
};

struct FeaturePlan {
  std::string mapping;
  int64_t label_dim = 0, dense_dim = 0, slots = 0;
  std::vector<FeatureGroup> groups;
  std::optional<int64_t> rows;  ///< of the mapping, where a binary chunk has their number
};

/// Chunks without a column that is used are not opened. Errors: Error(config) for a specification that the section
/// does not fit; Error(io) for files that are missing; Error(data) for a size that is no whole number of rows, and
/// binary chunks of different lengths.
FeaturePlan plan_features(const DataSection&, const std::string& mapping);
/// Reads the features `wanted`, indices of the specification's, as columns 0, 1, ... Errors: as above.
FeaturePlan plan_columns(const FeatureSpec&, const std::string& mapping, const std::vector<size_t>& wanted);

}  // namespace hctr
