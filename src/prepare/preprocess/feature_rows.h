// The rows of a feature specification's mapping: columns gathered from its chunks, block by block.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/features/feature_spec.h"

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

/// A chunk, read from its first row to its last. For FeatureRows.
class ChunkRows {
 public:
  virtual ~ChunkRows() = default;
  /// Appends up to `rows` rows to the columns it has; returns how many, fewer at its end alone.
  virtual int64_t read(int64_t rows, FeatureBlock& block) = 0;
  /// Of its files, packed as they may be: all bytes, 0 where one does not tell, and those read so far.
  virtual int64_t bytes() const = 0;
  virtual int64_t bytes_done() const = 0;
};

/// Not thread-safe: its user takes turns.
class FeatureRows {
 public:
  /// `wanted`: indices of features, each in one of the mapping's chunks. Chunks without any of them are not opened.
  /// Errors: Error(io) for files that are not there, Error(data) for a size that is no whole number of rows.
  FeatureRows(const FeatureSpec&, const std::string& mapping, const std::vector<size_t>& wanted);

  /// Replaces `block` by the next rows, `rows` of them but at the end; false when there are none.
  /// Errors: Error(data) naming file and line or row: a value that is no number, does not fit its type or is no id
  /// below the cardinality; a chunk that ends before the others.
  bool next(FeatureBlock& block, int64_t rows);
  /// Calls visit(block) for all rows, block by block, and shows progress: `what` is being done. Returns how many rows
  /// there are. Errors: those of next().
  int64_t for_each_block(const std::string& what, const std::function<void(const FeatureBlock&)>& visit);
  /// Of the files that are read, packed as they may be: all bytes, 0 where one does not tell, and those read so far.
  int64_t bytes() const;
  int64_t bytes_done() const;

 private:
  std::string mapping_;
  size_t columns_;
  std::vector<std::string> names_;  // of the chunks, for messages
  std::vector<std::unique_ptr<ChunkRows>> chunks_;
  int64_t done_ = 0;
};

}  // namespace hctr
