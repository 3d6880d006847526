// The columns of a Parquet row group, decoded by whichever of the threads that read it has nothing better to do.
#pragma once

#include <condition_variable>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/parquet/parquet_file.h"

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

/// One row group, cut into pieces of kParquetPieceRows rows. Each piece is one thread's, which reads its columns in
/// their order.
///
/// A column can only be decoded from front to back, by one thread at a time, and some of its pieces take a hundred
/// times as long as others: the first brings the dictionary. So decoding belongs to nobody. A thread whose next column
/// is not there yet decodes: that column, or where another thread is at it, the earliest piece of any column that
/// nobody is at. Values wait for the thread of their piece. It sleeps only when every column is being decoded or has
/// been up to the last piece that is wanted; so there are never values of more pieces than threads have been given.
class ParquetRowGroup {
 public:
  /// `fields`: the columns, which may name a field twice. `first_piece`: what is in front of it will not be asked for.
  ParquetRowGroup(std::shared_ptr<ParquetFile>, fs::path, int64_t group, std::vector<int64_t> fields,
                  int64_t first_piece);

  /// Errors: Error(data) naming file, row group, column and row; or when a piece before failed.
  ParquetPiece read(size_t column, int64_t piece);
  /// Instead of reading the columns of a piece: they are decoded only if one behind it is read.
  void skip(int64_t piece);
  /// Whoever cannot go on with a piece says so. Those behind it fail too, those before go on.
  void fail(int64_t piece);

  const fs::path& path() const { return path_; }
  int64_t group() const { return group_; }
  const ParquetFile& file() const { return *file_; }
  const ParquetField& field(size_t column) const { return file_->info().fields[fields_[column]]; }

 private:
  struct Decoded {
    int64_t piece;
    ParquetPiece values;
  };
  struct Column {
    std::mutex memory;  // of its values; see ~ParquetPiece
    std::unique_ptr<ParquetColumn> reader;
    std::list<Decoded> decoded;  // what waits for the threads of its pieces
    std::string problem;         // why there is no more of it
  };
  struct Sleeper {
    size_t column;
    int64_t piece;
    bool woken = false;
    std::condition_variable wake{};
  };
  static constexpr int64_t kNobodys = std::numeric_limits<int64_t>::max();

  std::optional<ParquetPiece> take(Column&, int64_t piece);
  std::optional<size_t> column_to_decode(size_t wanted) const;
  void decode(size_t column, std::unique_lock<std::mutex>&);
  std::string decode_next(size_t column, int64_t piece, ParquetPiece&);
  void sleep(size_t column, int64_t piece, std::unique_lock<std::mutex>&);
  void wake_one_if_there_is_more();
  template <class Which>
  void wake(const Which& which);

  std::shared_ptr<ParquetFile> file_;
  fs::path path_;
  int64_t group_;
  std::vector<int64_t> fields_;

  std::mutex mutex_;  // of all below but the readers, each of which is the decoding thread's
  std::vector<Column> columns_;
  std::vector<int64_t> next_;  // of each column: the piece that anybody may decode; kNobodys while somebody does, and
                               // when there is no more
  std::vector<bool> skipped_;  // of each piece
  int64_t last_wanted_ = -1;   // of the pieces
  int64_t failed_at_ = kNobodys;
  std::list<Sleeper*> sleepers_;
};

}  // namespace hctr
