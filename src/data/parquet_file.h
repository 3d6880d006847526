// Parquet files by way of the plug-in, with errors as this program has them.
#pragma once

#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/files.h"
#include "data/parquet_plugin.h"

namespace hctr {

/// Loads the plug-in, once. Errors: Error(io) saying how to get one.
const ParquetPlugin& parquet_plugin();
/// Why there is no plug-in; empty where there is.
std::string why_no_parquet();

/// Rows that are decoded at a time: as values and as samples they fit the second-level cache together.
inline constexpr int64_t kParquetPieceRows = 8192;

/// Errors: Error(io) when there is no such file, Error(data) when it is not whole.
std::shared_ptr<ParquetFile> open_parquet(const fs::path&);

/// Values of a piece of a column, as long as this lives.
class ParquetPiece {
 public:
  explicit ParquetPiece(void (*drop)(void*)) : drop_(drop) {}
  ParquetPiece(ParquetPiece&& other) noexcept : values(other.values), owner_(std::exchange(other.owner_, nullptr)), drop_(other.drop_), column_(other.column_) {}
  ~ParquetPiece();
  ParquetValues values;

 private:
  friend class ParquetRowGroup;
  void* owner_ = nullptr;
  void (*drop_)(void*);
  std::mutex* column_ = nullptr;
};

/// Columns of one row group, which threads read piece by piece, side by side: each column is one thread's at a time, in the order of the pieces.
/// Whoever was given piece n reads all columns in their order, so that the readers of n and n + 1 follow each other from column to column.
class ParquetRowGroup {
 public:
  /// `fields`: the columns, which may name a field twice. `first_piece`: what is in front of it will not be asked for.
  ParquetRowGroup(std::shared_ptr<ParquetFile>, fs::path, int64_t group, std::vector<int64_t> fields, int64_t first_piece);

  /// Waits until the pieces before have been read. Errors: Error(data) naming file, row group, column and row.
  ParquetPiece read(size_t column, int64_t piece);
  /// Instead of reading the columns of a piece: they are decoded only if one behind it is read. Waits as reading does.
  void skip(int64_t piece);
  /// Whoever cannot go on with a piece says so; else those behind it would wait for ever. Those before it go on.
  void fail(int64_t piece);

  const fs::path& path() const { return path_; }
  int64_t group() const { return group_; }
  const ParquetFile& file() const { return *file_; }
  const ParquetField& field(size_t column) const { return file_->info().fields[fields_[column]]; }

 private:
  struct Column {
    std::mutex mutex;
    std::condition_variable turn;
    std::unique_ptr<ParquetColumn> reader;
    int64_t piece = 0;    // the next
    int64_t decoded = 0;  // pieces that the reader has gone past: skipped ones follow when one behind them is read
    int64_t failed_at = std::numeric_limits<int64_t>::max();  // the first that will not be read
  };
  void read_next(size_t column, ParquetPiece&);
  /// Waits until the pieces before have been read or skipped.
  std::unique_lock<std::mutex> turn_of(Column&, int64_t piece);

  std::shared_ptr<ParquetFile> file_;
  fs::path path_;
  int64_t group_, first_piece_;
  std::vector<int64_t> fields_;
  std::vector<Column> columns_;
};

}  // namespace hctr
