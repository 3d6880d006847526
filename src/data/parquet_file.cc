#include "data/parquet_file.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/error.h"
#include "base/platform.h"

namespace hctr {
namespace {

const ParquetPlugin& load() {
  std::error_code none;
  const fs::path beside = fs::read_symlink("/proc/self/exe", none).parent_path() / kParquetPluginFile;
  const bool there = fs::exists(beside, none);
  void* library = ::dlopen(there ? beside.c_str() : kParquetPluginFile, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const std::string why = ::dlerror();
    throw Error(Kind::io, there ? cat("Parquet data needs '", beside.string(), "', which cannot be loaded: ", why, "; if Arrow is gone or another now, configure and build again")
                                : cat("Parquet data needs ", kParquetPluginFile, " beside the program, and there is none (", why, "). Was the program copied without it? Else Arrow C++ was not found when "
                                      "this was built: install it (pip install pyarrow, or the packages libarrow-dev and libparquet-dev), then configure and build again; CMake's line "
                                      "\"Parquet:\" says what it found"));
  }
  const auto entry = reinterpret_cast<const ParquetPlugin* (*)()>(::dlsym(library, kParquetPluginEntry));
  if (!entry || entry()->version != kParquetPlugin)
    throw Error(Kind::io, cat("'", beside.string(), "' belongs to another version of this program; build it again"));
  return *entry();
}

}  // namespace

const ParquetPlugin& parquet_plugin() {
  static const ParquetPlugin& plugin = load();
  return plugin;
}

std::string why_no_parquet() try {
  parquet_plugin();
  return "";
} catch (const Error& error) {
  return error.what();
}

std::shared_ptr<ParquetFile> open_parquet(const fs::path& path) {
  open_to_read(path, "data file");  // says why not, in the words of all formats
  ParquetFile* file = nullptr;
  if (const char* problem = parquet_plugin().open(path.c_str(), kParquetPieceRows, &file))
    throw Error(Kind::data, cat("'", path.string(), "' is no whole Parquet file: ", problem));
  return std::shared_ptr<ParquetFile>(file);
}

ParquetPiece::~ParquetPiece() {
  if (!owner_) return;
  std::unique_lock<std::mutex> lock;
  // The reader of the column may hold the memory too, and counts of references within Arrow are what the thread sanitizer cannot see.
  if constexpr (kSanitized)
    if (column_) lock = std::unique_lock(*column_);
  drop_(owner_);
}

ParquetRowGroup::ParquetRowGroup(std::shared_ptr<ParquetFile> file, fs::path path, int64_t group, std::vector<int64_t> fields, int64_t first_piece)
    : file_(std::move(file)), path_(std::move(path)), group_(group), first_piece_(first_piece), fields_(std::move(fields)), columns_(fields_.size()) {}

void ParquetRowGroup::read_next(size_t at, ParquetPiece& piece) {
  Column& column = columns_[at];
  const char* problem = nullptr;
  if (!column.reader) {
    ParquetColumn* opened = nullptr;
    problem = file_->open_column(group_, fields_[at], opened);
    column.reader.reset(opened);
  }
  if (!problem) problem = column.reader->read(piece.values, piece.owner_);
  if (problem)
    throw Error(Kind::data, cat("'", path_.string(), "': row group ", group_ + 1, " of ", file_->info().group_count, ", column '", field(at).name, "' (", field(at).said,
                                ") cannot be read from its row ", column.decoded * kParquetPieceRows + 1, " on: ", problem));
  ++column.decoded;
}

std::unique_lock<std::mutex> ParquetRowGroup::turn_of(Column& column, int64_t piece) {
  std::unique_lock lock(column.mutex);
  if (piece == first_piece_) column.piece = piece;  // a reader that goes on in the middle
  column.turn.wait(lock, [&] { return piece > column.failed_at || column.piece == piece; });
  if (piece > column.failed_at) throw Error(Kind::data, cat("'", path_.string(), "': row group ", group_ + 1, ": rows before could not be read"));
  return lock;
}

ParquetPiece ParquetRowGroup::read(size_t at, int64_t piece) {
  Column& column = columns_[at];
  ParquetPiece found(parquet_plugin().drop);
  std::unique_lock lock = turn_of(column, piece);
  while (column.decoded < piece) {
    ParquetPiece skipped(parquet_plugin().drop);
    read_next(at, skipped);
  }
  read_next(at, found);
  found.column_ = &column.mutex;
  ++column.piece;
  lock.unlock();
  column.turn.notify_all();
  return found;
}

void ParquetRowGroup::skip(int64_t piece) {
  for (Column& column : columns_) {
    {
      const std::unique_lock lock = turn_of(column, piece);
      ++column.piece;
    }
    column.turn.notify_all();
  }
}

void ParquetRowGroup::fail(int64_t piece) {
  for (Column& column : columns_) {
    {
      const std::lock_guard lock(column.mutex);
      column.failed_at = std::min(column.failed_at, piece);
    }
    column.turn.notify_all();
  }
}

}  // namespace hctr
