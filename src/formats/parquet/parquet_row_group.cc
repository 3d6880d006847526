#include "formats/parquet/parquet_row_group.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "formats/parquet/parquet_values.h"

namespace hctr {

ParquetPiece::~ParquetPiece() {
  if (!owner_) return;
  std::unique_lock<std::mutex> lock;
  // The column reader may still use the memory that is freed here. Arrow counts references, so this is safe, but
  // ThreadSanitizer cannot see the counts. Under ThreadSanitizer, a lock therefore orders the accesses.
  if constexpr (kSanitized)
    if (memory_) lock = std::unique_lock(*memory_);
  drop_(owner_);
}

ParquetRowGroup::ParquetRowGroup(std::shared_ptr<ParquetFile> file, fs::path path, int64_t group,
                                 const std::vector<ParquetRead>& columns, int64_t first_piece)
    : file_(std::move(file)), path_(std::move(path)), group_(group), next_(columns.size()) {
  for (const ParquetRead& read : columns)
    columns_.emplace_back(
        read, read.field == kNoField ? ParquetField() : read_as(file_->info().fields[read.field], read.form));
  const int64_t rows = file_->info().groups[group].rows;
  skipped_.resize(static_cast<size_t>((rows + kParquetPieceRows - 1) / kParquetPieceRows));
  std::fill_n(skipped_.begin(), first_piece, true);
  for (size_t c = 0; c < columns_.size(); ++c)
    if (!has(c)) next_[c] = kNone;
}

ParquetPiece ParquetRowGroup::read(size_t at, int64_t piece) {
  Column& column = columns_[at];
  std::unique_lock lock(mutex_);
  last_requested_ = std::max(last_requested_, piece);
  for (;;) {
    if (piece >= failed_at_)
      throw Error(Kind::data,
                  cat("'", path_.string(), "': row group ", group_ + 1, ": earlier rows could not be read"));
    if (std::optional<ParquetPiece> values = take(column, piece)) {
      wake_one_if_there_is_more();
      return std::move(*values);
    }
    if (!column.problem.empty()) throw Error(Kind::data, column.problem);
    if (const auto next = column_to_decode(at))
      decode(*next, lock);
    else
      sleep(at, piece, lock);
  }
}

std::optional<ParquetPiece> ParquetRowGroup::take(Column& column, int64_t piece) {
  const auto found = std::find_if(column.decoded.begin(), column.decoded.end(),
                                  [&](const Decoded& one) { return one.piece == piece; });
  if (found == column.decoded.end()) return std::nullopt;
  ParquetPiece values = std::move(found->values);
  column.decoded.erase(found);
  return values;
}

/// The requested column if it can be decoded now, else the column whose next piece is earliest.
std::optional<size_t> ParquetRowGroup::column_to_decode(size_t requested) const {
  const int64_t end = std::min(last_requested_ + 1, failed_at_);
  if (next_[requested] < end) return requested;
  const auto earliest = std::min_element(next_.begin(), next_.end());
  if (*earliest >= end) return std::nullopt;
  return static_cast<size_t>(earliest - next_.begin());
}

/// Decodes the next piece of a column; releases the lock meanwhile.
void ParquetRowGroup::decode(size_t at, std::unique_lock<std::mutex>& lock) {
  Column& column = columns_[at];
  std::list<Decoded> one;
  one.push_back({next_[at], ParquetPiece(drop_of(*file_), &column.memory)});
  Decoded& decoded = one.front();
  next_[at] = kNone;
  wake_one_if_there_is_more();
  lock.unlock();
  std::string problem = decode_next(at, decoded.piece, decoded.values);
  lock.lock();
  const int64_t piece = decoded.piece;
  column.problem = std::move(problem);
  if (column.problem.empty()) {
    next_[at] = piece + 1;
    if (!skipped_[static_cast<size_t>(piece)]) column.decoded.splice(column.decoded.end(), one);
  }
  wake([&](const Sleeper& sleeper) {
    return sleeper.column == at && (sleeper.piece == piece || !column.problem.empty());
  });
}

/// Returns the error text; empty on success.
std::string ParquetRowGroup::decode_next(size_t at, int64_t piece, ParquetPiece& values) try {
  Column& column = columns_[at];
  std::unique_lock<std::mutex> memory;
  if constexpr (kSanitized) memory = std::unique_lock(column.memory);
  const char* problem = nullptr;
  if (!column.reader) {
    ParquetColumn* opened = nullptr;
    problem = file_->open_column(group_, column.read.field, column.read.form, opened);
    column.reader.reset(opened);
  }
  if (!problem) problem = values.decode(*column.reader);
  if (!problem) return "";
  return cat("'", path_.string(), "': row group ", group_ + 1, " of ", file_->info().group_count, ", column '",
             field(at).name, "' (", field(at).said, ") cannot be read from its row ", piece * kParquetPieceRows + 1,
             " on: ", problem);
} catch (const std::bad_alloc&) {
  return "out of memory";  // so short that std::string does not allocate
} catch (const std::exception& error) {
  return error.what();
}

void ParquetRowGroup::sleep(size_t column, int64_t piece, std::unique_lock<std::mutex>& lock) {
  Sleeper self{column, piece};
  sleepers_.push_back(&self);
  self.wake.wait(lock, [&] { return self.woken; });
}

/// Wakes a sleeping thread if some column can be decoded. Called before a thread decodes; each woken thread calls it
/// again, so no thread sleeps while there is a column to decode.
void ParquetRowGroup::wake_one_if_there_is_more() {
  if (sleepers_.empty() || !column_to_decode(sleepers_.front()->column)) return;
  wake([first = sleepers_.front()](const Sleeper& sleeper) { return &sleeper == first; });
}

template <class Which>
void ParquetRowGroup::wake(const Which& which) {
  sleepers_.remove_if([&](Sleeper* sleeper) {
    if (!which(*sleeper)) return false;
    sleeper->woken = true;
    sleeper->wake.notify_one();
    return true;
  });
}

void ParquetRowGroup::skip(int64_t piece) {
  std::list<Decoded> skipped;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  skipped_[static_cast<size_t>(piece)] = true;
  for (Column& column : columns_) {
    const auto found = std::find_if(column.decoded.begin(), column.decoded.end(),
                                    [&](const Decoded& one) { return one.piece == piece; });
    if (found != column.decoded.end()) skipped.splice(skipped.end(), column.decoded, found);
  }
}

void ParquetRowGroup::fail(int64_t piece) {
  const std::lock_guard lock(mutex_);
  failed_at_ = std::min(failed_at_, piece);
  wake([](const Sleeper&) { return true; });
}

}  // namespace hctr
