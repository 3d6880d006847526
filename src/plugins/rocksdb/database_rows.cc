// Look-ups of many keys, and bulk loads through sorted files.
#include <fcntl.h>
#include <rocksdb/sst_file_writer.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/rocksdb/database.h"

namespace hctr {
namespace {

constexpr int64_t kKeysOfPiece = 32;  // RocksDB's batch size in MultiGet
constexpr uint64_t kBytesOfFile = uint64_t{256} << 20;
constexpr size_t kBytesOfWrite = size_t{4} << 20;

/// Converts a key to a number. The numbers have the order in which RocksDB compares the bytes of keys.
uint64_t order_of(int64_t key, int32_t key_bytes) {
  const auto bits = static_cast<uint64_t>(key);
  return __builtin_bswap64(key_bytes == 8 ? bits : bits << 32);
}

struct KeyAt {
  uint64_t order;
  int32_t at;
};

/// Collects the keys that are not found yet, sorted in RocksDB's order.
void sort_keys(const RocksRequest& request, std::vector<KeyAt>& keys) {
  keys.clear();
  for (int64_t i = 0; i < request.count; ++i)
    if (!request.found[i]) keys.push_back({order_of(request.keys[i], request.key_bytes), static_cast<int32_t>(i)});
  std::sort(keys.begin(), keys.end(), [](const KeyAt& a, const KeyAt& b) { return a.order < b.order; });
}

struct PieceResult {
  int64_t hits = 0;
  std::string problem{};
};

PieceResult read_piece(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* column, const RocksRequest& request,
                       const KeyAt* keys, size_t count) {
  thread_local std::vector<rocksdb::PinnableSlice> values(kKeysOfPiece);
  rocksdb::Slice slices[kKeysOfPiece];
  rocksdb::Status statuses[kKeysOfPiece];
  for (size_t i = 0; i < count; ++i)
    slices[i] = rocksdb::Slice(reinterpret_cast<const char*>(request.keys + keys[i].at),
                               static_cast<size_t>(request.key_bytes));
  db.MultiGet(rocksdb::ReadOptions(), column, count, slices, values.data(), statuses, true);
  PieceResult result;
  for (size_t i = 0; i < count; ++i) {
    const int32_t at = keys[i].at;
    if (!statuses[i].ok()) {
      if (!statuses[i].IsNotFound()) result.problem = statuses[i].ToString();
      continue;
    }
    if (values[i].size() != static_cast<size_t>(request.row_bytes)) {
      result.problem = "Corruption: the row of key " + std::to_string(request.keys[at]) + " has " +
                       std::to_string(values[i].size()) + " bytes, not " + std::to_string(request.row_bytes);
    } else {
      if (request.rows)
        std::memcpy(request.rows + (request.places ? request.places[at] : at) * request.stride, values[i].data(),
                    values[i].size());
      request.found[at] = 1;
      ++result.hits;
    }
    values[i].Reset();
  }
  return result;
}

/// Settings of files that are written once, in large pieces. Direct writes need less processor time, and do not evict
/// other files from the page cache.
rocksdb::EnvOptions bulk_settings(const OpenDatabase& in) {
  rocksdb::EnvOptions settings;
  const std::string probe = in.path + "/bulk_probe.sst";
  const int descriptor = ::open(probe.c_str(), O_CREAT | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);
  settings.use_direct_writes = descriptor >= 0;  // some file systems have no direct I/O
  settings.writable_file_max_buffer_size = kBytesOfWrite;
  if (descriptor >= 0) ::close(descriptor);
  std::error_code error;
  std::filesystem::remove(probe, error);
  return settings;
}

/// The sorted files of one source of a bulk load.
class SortedFiles {
 public:
  SortedFiles(const OpenDatabase& in, rocksdb::ColumnFamilyHandle* column, const rocksdb::EnvOptions& settings,
              std::string start)
      : in_(in), column_(column), settings_(settings), start_(std::move(start)) {}
  SortedFiles(const SortedFiles&) = delete;
  SortedFiles& operator=(const SortedFiles&) = delete;
  ~SortedFiles() {
    std::error_code error;  // the database has moved the ingested files, so their removal fails, which is ignored
    for (const std::string& name : names_) std::filesystem::remove(name, error);
  }
  /// Writes all rows of the source. Does not throw, because it runs in a thread: problem() describes a failure.
  void write(const RocksSource& source, size_t key_bytes, size_t row_bytes) noexcept try {
    const void *key = nullptr, *row = nullptr;
    RocksNext next = RocksNext::row;
    while (problem_.empty() && (next = source.next(source.self, &key, &row)) == RocksNext::row)
      keep(add({static_cast<const char*>(key), key_bytes}, {static_cast<const char*>(row), row_bytes}));
    if (problem_.empty() && next == RocksNext::failed) problem_ = "the rows could not be read";
    if (problem_.empty()) keep(end_file());
  } catch (const std::bad_alloc&) {
    problem_ = "out of memory";  // short enough for a string without an allocation
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
  const std::vector<std::string>& names() const { return names_; }
  const std::string& problem() const { return problem_; }

 private:
  void keep(const rocksdb::Status& status) {
    if (!status.ok()) problem_ = status.ToString();
  }
  rocksdb::Status add(const rocksdb::Slice& key, const rocksdb::Slice& value) {
    if (!writer_) {
      names_.push_back(in_.path + "/bulk_" + start_ + std::to_string(names_.size()) + ".sst");
      writer_ = std::make_unique<rocksdb::SstFileWriter>(settings_, in_.options, column_);
      const rocksdb::Status opened = writer_->Open(names_.back());
      if (!opened.ok()) return opened;
    }
    const rocksdb::Status put = writer_->Put(key, value);
    return put.ok() && writer_->FileSize() >= kBytesOfFile ? end_file() : put;
  }
  rocksdb::Status end_file() {
    const rocksdb::Status finished = writer_ ? writer_->Finish() : rocksdb::Status();
    writer_.reset();
    return finished;
  }
  const OpenDatabase& in_;
  rocksdb::ColumnFamilyHandle* column_;
  const rocksdb::EnvOptions& settings_;
  std::string start_, problem_{};  // start_: the common start of the files' names
  std::vector<std::string> names_{};
  std::unique_ptr<rocksdb::SstFileWriter> writer_{};
};

}  // namespace

const char* RocksDatabaseOf::get(RocksColumn* column, const RocksRequest& request, int64_t* hits) {
  thread_local std::vector<KeyAt> keys;
  thread_local std::vector<PieceResult> results;
  sort_keys(request, keys);
  const auto count = static_cast<int64_t>(keys.size());
  const int64_t pieces = (count + kKeysOfPiece - 1) / kKeysOfPiece;
  results.assign(static_cast<size_t>(pieces), {});
  rocksdb::ColumnFamilyHandle* const handle = handle_of(column);
  const KeyAt* const sorted = keys.data();
  PieceResult* const of_pieces = results.data();
  database_->readers->run(pieces, [&, sorted, of_pieces](int64_t piece) {
    const int64_t first = piece * kKeysOfPiece;
    of_pieces[piece] = read_piece(*database_->db, handle, request, sorted + first,
                                  static_cast<size_t>(std::min(kKeysOfPiece, count - first)));
  });
  *hits = 0;
  for (const PieceResult& one : results) {
    if (!one.problem.empty()) return kept_problem(one.problem);
    *hits += one.hits;
  }
  return nullptr;
}

const char* RocksDatabaseOf::bulk(RocksColumn* column, int32_t key_bytes, int64_t row_bytes, const RocksSource* sources,
                                  int64_t count) {
  const rocksdb::EnvOptions settings = bulk_settings(*database_);
  std::deque<SortedFiles> parts;
  {
    std::vector<std::jthread> threads;
    for (int64_t s = 0; s < count; ++s) {
      SortedFiles& part = parts.emplace_back(*database_, handle_of(column), settings, std::to_string(s) + "_");
      threads.emplace_back([&part, &source = sources[s], key_bytes, row_bytes] {
        part.write(source, static_cast<size_t>(key_bytes), static_cast<size_t>(row_bytes));
      });
    }
  }
  std::vector<std::string> names;
  for (const SortedFiles& part : parts) {
    if (!part.problem().empty()) return kept_problem(part.problem());
    names.insert(names.end(), part.names().begin(), part.names().end());
  }
  if (names.empty()) return nullptr;
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  return problem_of(database_->db->IngestExternalFile(handle_of(column), names, options));  // ingests all files or none
}

}  // namespace hctr
