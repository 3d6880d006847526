// Reads the rows of a mapping of a feature specification, in blocks. A block holds the stored values column by column.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/features/feature_cutter.h"
#include "hctr/surroundings.h"

namespace hctr {

/// The values of one feature: in `wholes` if is_whole(type of the feature), else in `reals`.
struct FeatureValues {
  std::vector<int64_t> wholes;
  std::vector<double> reals;
};

struct FeatureBlock {
  int64_t rows = 0;
  std::vector<FeatureValues> columns;  ///< [wanted feature] values of all `rows` rows
};

/// Reads a mapping with the same file cutter as training. Not thread-safe.
class FeatureRows {
 public:
  /// Opens the mapping. `wanted`: indices of features, each of which must be in one of the mapping's chunks. Chunks
  /// without a wanted feature are not opened. Errors: Error(io) for files that cannot be opened; Error(data) for a size
  /// that is not a whole number of rows, and for binary chunks of different lengths.
  FeatureRows(const FeatureSpec&, const std::string& mapping, const std::vector<size_t>& wanted);
  FeatureRows(const FeatureRows&) = delete;
  FeatureRows& operator=(const FeatureRows&) = delete;

  /// Reads the next rows into `block`. Returns false at the end. Errors: Error(data) with file and line or row, for a
  /// value that is not a number, does not fit its type, or is not an id below the cardinality; Error(data) for chunks
  /// of different lengths.
  bool next(FeatureBlock& block);
  /// Calls visit(block) for all rows. `show`, `what`: the progress display and its label. Returns the number of rows.
  /// Errors: those of next().
  int64_t for_each_block(const ShowProgress& show, const std::string& what,
                         const std::function<void(const FeatureBlock&)>& visit);
  /// The total size of the files to read, compressed or not; 0 if a size is unknown.
  int64_t bytes() const;
  /// The number of bytes read so far, of all files.
  int64_t bytes_done() const { return *cutter_.consumed(); }

 private:
  void read_csv(const FeatureGroup&, const ChunkPart&, FeatureBlock&);
  void read_binary(const FeatureGroup&, const ChunkPart&, FeatureBlock&);

  FeaturePlan plan_;
  FeatureCutter cutter_;
  size_t columns_;
  Chunk chunk_;
  FeatureCells cells_;
  std::vector<std::byte> bytes_;  // rows of a binary chunk
};

}  // namespace hctr
