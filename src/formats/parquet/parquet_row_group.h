// Decodes the columns of a Parquet row group. Any idle reading thread decodes any column.
#pragma once

#include <condition_variable>
#include <deque>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/parquet/parquet_columns.h"
#include "formats/parquet/parquet_file.h"

namespace hctr {

/// Decoded values of one piece of a column. Valid while this object and its row group exist.
class ParquetPiece {
 public:
  /// `drop`: frees the values. `memory`: guards them under ThreadSanitizer; see the destructor.
  ParquetPiece(void (*drop)(void*), std::mutex* memory) : drop_(drop), memory_(memory) {}
  ParquetPiece(ParquetPiece&& other) noexcept
      : values(other.values),
        owner_(std::exchange(other.owner_, nullptr)),
        drop_(other.drop_),
        memory_(other.memory_) {}
  ~ParquetPiece();
  /// Decodes the next piece of a column. Returns an error text, or null. Call once.
  const char* decode(ParquetColumn& column) { return column.read(values, owner_); }
  ParquetValues values;

 private:
  void* owner_ = nullptr;
  void (*drop_)(void*);
  std::mutex* memory_;
};

/// A column to read: a field of the file and its form. Several columns may read the same field.
struct ParquetRead {
  int64_t field;
  ParquetForm form = ParquetForm::number;
};

/// A row group, divided into pieces of kParquetPieceRows rows. One thread reads all columns of a piece, in order.
///
/// A column can be decoded only sequentially, by one thread at a time. Some pieces take a hundred times longer than
/// others, because the first piece includes the dictionary. Therefore no thread owns a column. A thread that needs a
/// piece of a column decodes the column's next piece. If another thread is decoding that column, the thread decodes the
/// earliest pending piece of any other column. Decoded values are queued for the thread of their piece. A thread sleeps
/// only if every column is being decoded, or is decoded up to the last requested piece. This bounds the queued values
/// to the requested pieces.
class ParquetRowGroup {
 public:
  /// `columns`: the columns to read. Several may read the same field; a column with the field kNoField is not read.
  /// `first_piece`: the first piece that will be requested.
  ParquetRowGroup(std::shared_ptr<ParquetFile>, fs::path, int64_t group, const std::vector<ParquetRead>& columns,
                  int64_t first_piece);

  /// Returns the values of a piece. Errors: Error(data) if the piece or an earlier one cannot be read, naming file, row
  /// group, column and row.
  ParquetPiece read(size_t column, int64_t piece);
  /// Marks a piece as not needed. Its columns are still decoded if a later piece is read.
  void skip(int64_t piece);
  /// Marks a piece as failed. Later pieces fail, too; earlier pieces are not affected.
  void fail(int64_t piece);

  const fs::path& path() const { return path_; }
  int64_t group() const { return group_; }
  const ParquetFile& file() const { return *file_; }
  /// Whether the file has the column.
  bool has(size_t column) const { return columns_[column].read.field != kNoField; }
  const ParquetField& field(size_t column) const { return columns_[column].field; }

 private:
  struct Decoded {
    int64_t piece;
    ParquetPiece values;
  };
  struct Column {
    Column(const ParquetRead& of, const ParquetField& as) : read(of), field(as) {}
    ParquetRead read;
    ParquetField field;  // the field, with the value type of its ParquetForm
    std::mutex memory;   // guards the column's values under ThreadSanitizer; see ~ParquetPiece
    std::unique_ptr<ParquetColumn> reader;
    std::list<Decoded> decoded;  // decoded pieces that their threads have not fetched yet
    std::string problem;         // decoding error; empty: none
  };
  struct Sleeper {
    size_t column;
    int64_t piece;
    bool woken = false;
    std::condition_variable wake{};
  };
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

  std::optional<ParquetPiece> take(Column&, int64_t piece);
  std::optional<size_t> column_to_decode(size_t requested) const;
  void decode(size_t column, std::unique_lock<std::mutex>&);
  std::string decode_next(size_t column, int64_t piece, ParquetPiece&);
  void sleep(size_t column, int64_t piece, std::unique_lock<std::mutex>&);
  void wake_one_if_there_is_more();
  template <class Which>
  void wake(const Which& which);

  std::shared_ptr<ParquetFile> file_;
  fs::path path_;
  int64_t group_;

  std::mutex mutex_;  // guards all members below, except column readers, which only the decoding thread uses
  std::deque<Column> columns_;
  // [columns] the next piece to decode; kNone during decoding, after an error, and for missing columns
  std::vector<int64_t> next_;
  std::vector<bool> skipped_;    // [pieces] whether the piece is not needed
  int64_t last_requested_ = -1;  // the latest requested piece
  int64_t failed_at_ = kNone;
  std::list<Sleeper*> sleepers_;
};

}  // namespace hctr
