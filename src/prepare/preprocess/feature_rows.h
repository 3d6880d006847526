// Reads the rows of a mapping of a feature specification block by block, as columns of the stored values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/features/feature_cutter.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Values of one feature: in `wholes` if is_whole() of its type, else in `reals`.
struct FeatureValues {
  std::vector<int64_t> wholes;
  std::vector<double> reals;
};

struct FeatureBlock {
  int64_t rows = 0;
  std::vector<FeatureValues> columns;  ///< [wanted], each of `rows` values
};

/// Reads a mapping with the same cutter as training. Not thread-safe.
class FeatureRows {
 public:
  /// Opens the mapping for the features `wanted` (indices), each of which must be in one of its chunks. Chunks without
  /// any of them are not opened. Errors: Error(io) for files that cannot be opened; Error(data) for a size that is not
  /// a whole number of rows, and for binary chunks of different lengths.
  FeatureRows(const FeatureSpec&, const std::string& mapping, const std::vector<size_t>& wanted);
  FeatureRows(const FeatureRows&) = delete;
  FeatureRows& operator=(const FeatureRows&) = delete;

  /// Reads the next rows into `block`; returns false when there are none. Errors: Error(data) naming file and line or
  /// row, for a value that is not a number, does not fit its type, or is not an id below the cardinality; and for
  /// chunks of different lengths.
  bool next(FeatureBlock& block);
  /// Calls visit(block) for all rows, block by block, and shows progress labelled `what` by `show`. Returns the number
  /// of rows. Errors: those of next().
  int64_t for_each_block(const ShowProgress& show, const std::string& what,
                         const std::function<void(const FeatureBlock&)>& visit);
  /// Returns the total size of the files that are read, compressed or not; 0 if one is unknown.
  int64_t bytes() const;
  /// Returns how many bytes of these files were read so far.
  int64_t bytes_done() const { return *cutter_.consumed(); }

 private:
  void read_csv(const FeatureGroup&, const ChunkPart&, FeatureBlock&);
  void read_binary(const FeatureGroup&, const ChunkPart&, FeatureBlock&);

  FeaturePlan plan_;
  FeatureCutter cutter_;
  size_t columns_;
  Chunk chunk_;
  FeatureCells cells_;
  std::vector<std::byte> bytes_;  // rows of a binary group
};

}  // namespace hctr
