// The rows of a feature specification's mapping as columns of the stored values, block by block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/features/feature_cutter.h"

namespace hctr {

/// Values of one feature: `wholes` where its type is_whole(), else `reals`.
struct FeatureValues {
  std::vector<int64_t> wholes;
  std::vector<double> reals;
};

struct FeatureBlock {
  int64_t rows = 0;
  std::vector<FeatureValues> columns;  ///< [wanted], each of `rows` values
};

/// Reads a mapping through the cutter that training uses. Not thread-safe.
class FeatureRows {
 public:
  /// `wanted`: indices of features, each in one of the mapping's chunks. Chunks without any of them are not opened.
  /// Errors: Error(io) for files that cannot be opened; Error(data) for a size that is no whole number of rows, and for
  /// binary chunks of different lengths.
  FeatureRows(const FeatureSpec&, const std::string& mapping, const std::vector<size_t>& wanted);
  FeatureRows(const FeatureRows&) = delete;
  FeatureRows& operator=(const FeatureRows&) = delete;

  /// Replaces `block` by the next rows; false when there are none.
  /// Errors: Error(data) naming file and line or row: a value that is no number, does not fit its type or is no id
  /// below the cardinality; a chunk that ends before the others.
  bool next(FeatureBlock& block);
  /// Calls visit(block) for all rows, block by block, and shows progress under the name `what`. Returns the number of
  /// rows. Errors: those of next().
  int64_t for_each_block(const std::string& what, const std::function<void(const FeatureBlock&)>& visit);
  /// Sizes of the files that are read, compressed or not; 0 where one is unknown.
  int64_t bytes() const;
  /// Bytes of these files that were read so far.
  int64_t bytes_done() const { return *cutter_.consumed(); }

 private:
  void read_csv(const FeatureGroup&, const ChunkPart&, FeatureBlock&);
  void read_binary(const FeatureGroup&, const ChunkPart&, FeatureBlock&);

  FeaturePlan plan_;
  FeatureCutter cutter_;
  size_t columns_;
  Chunk chunk_;
  FeatureCells cells_;
  std::vector<std::byte> bytes_;  // of a binary group
};

}  // namespace hctr
