// The columns of a Parquet row group, decoded by whichever of its reading threads is idle.
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

/// Values of a piece of a column, as long as this and its row group live.
class ParquetPiece {
 public:
  explicit ParquetPiece(void (*drop)(void*)) : drop_(drop) {}
  ParquetPiece(ParquetPiece&& other) noexcept
      : values(other.values),
        owner_(std::exchange(other.owner_, nullptr)),
        drop_(other.drop_),
        memory_(other.memory_) {}
  ~ParquetPiece();
  ParquetValues values;

 private:
  friend class ParquetRowGroup;
  void* owner_ = nullptr;
  void (*drop_)(void*);
  std::mutex* memory_ = nullptr;
};

/// A column that is read: a field of the file, which several columns may be of, and in which form.
struct ParquetRead {
  int64_t field;
  ParquetForm form = ParquetForm::number;
};

/// One row group, cut into pieces of kParquetPieceRows rows. Each piece belongs to one thread, which reads its columns
/// in order.
///
/// A column can only be decoded from front to back, by one thread at a time, and some of its pieces take a hundred
/// times as long as others: the first has the dictionary. So no thread owns a column. A thread whose next column is not
/// decoded yet decodes it; if another thread is doing that, it decodes the earliest piece of any column that no thread
/// decodes. Decoded values are kept for the thread of their piece. A thread sleeps only when every column is being
/// decoded, or has been up to the last requested piece; so values are kept for no more pieces than threads have
/// requested.
class ParquetRowGroup {
 public:
  /// `columns`: of which some may be of one field, or of kNoField, which is not read. `first_piece`: earlier pieces
  /// will not be requested.
  ParquetRowGroup(std::shared_ptr<ParquetFile>, fs::path, int64_t group, const std::vector<ParquetRead>& columns,
                  int64_t first_piece);

  /// Errors: Error(data) naming file, row group, column and row; or when a piece before failed.
  ParquetPiece read(size_t column, int64_t piece);
  /// Called instead of reading the columns of a piece. They are decoded only if a later piece is read.
  void skip(int64_t piece);
  /// Drops a piece. Later pieces fail too; earlier ones are not affected.
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
    ParquetField field;  // the field in the form it is read
    std::mutex memory;   // guards its values; see ~ParquetPiece
    std::unique_ptr<ParquetColumn> reader;
    std::list<Decoded> decoded;  // kept for the threads of their pieces
    std::string problem;         // why there is no more of it
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

  std::mutex mutex_;  // guards all members below except the readers, each of which belongs to the decoding thread
  std::deque<Column> columns_;
  // [columns] the next piece to decode; kNone while a thread decodes the column, or after an error.
  std::vector<int64_t> next_;
  std::vector<bool> skipped_;    // for each piece
  int64_t last_requested_ = -1;  // the last requested piece
  int64_t failed_at_ = kNone;
  std::list<Sleeper*> sleepers_;
};

}  // namespace hctr
