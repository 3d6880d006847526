// The interface of the RocksDB plug-in. Only plain types cross it: no exceptions, no containers.
//
// The plug-in (src/plugins/rocksdb) is a library of its own, loaded when a store has a level in RocksDB: without
// RocksDB everything else builds and runs.
#pragma once

#include <cstdint>

namespace hctr {

enum class RocksOpening : int32_t {
  update,     ///< one process at a time
  read_only,  ///< as the database is now
  follow      ///< reads, and sees what another process writes after catch_up()
};

struct RocksSettings {
  const char* path;
  const char* own_path;  ///< of follow: a folder for the log of this reader
  RocksOpening opening;
  int32_t background_threads, reader_threads;
  int64_t cache_bytes;  ///< of blocks; 0: none
  bool direct_reads;    ///< past the page cache
};

/// Functions that can fail return what went wrong, or null. The text lives until the same thread calls the plug-in
/// again. It starts with "Corruption" where data are damaged.

/// A column family. Keeps its database open; readers may go on when it is dropped.
class RocksColumn {
 public:
  virtual ~RocksColumn() = default;
};

/// Keys whose found[i] is 0: rows of those that there are go to rows + places[i] * stride, or i * stride.
struct RocksRequest {
  const int64_t* keys;
  int64_t count;
  int32_t key_bytes;  ///< 8, or 4: the lower half
  const int32_t* places;
  float* rows;  ///< null: only whether there are rows
  int64_t stride, row_bytes;
  uint8_t* found;
};

/// A value to put, or without one, to remove. column null: the default column family.
struct RocksChange {
  RocksColumn* column;
  const void* key;
  int64_t key_bytes;
  const void* value;
  int64_t value_bytes;
};

/// Takes what is there; false ends it.
struct RocksSink {
  void* self;
  bool (*take)(void* self, const void* key, int64_t key_bytes, const void* value, int64_t value_bytes);
};

/// Gives the next key and its row; false at the end. Keys ascend by their bytes.
struct RocksSource {
  void* self;
  bool (*next)(void* self, const void** key, const void** row);
};

/// Any thread calls any member; changes follow each other.
class RocksDatabase {
 public:
  virtual ~RocksDatabase() = default;
  /// The names of column families, as keys; values are empty.
  virtual const char* columns(RocksSink) = 0;
  /// Null where there is none and `create` is not set.
  virtual const char* column(const char* name, bool create, RocksColumn** column) = 0;
  virtual const char* drop(RocksColumn*) = 0;
  virtual const char* get(RocksColumn*, const RocksRequest&, int64_t* hits) = 0;
  /// All of the column, or of the default one where it is null, from the first key with this start.
  virtual const char* each(RocksColumn*, const char* start, RocksSink) = 0;
  /// All of it or nothing, on the disk when this returns.
  virtual const char* write(const RocksChange* changes, int64_t count) = 0;
  /// Adds sorted rows to an empty column, as files that are made whole first.
  virtual const char* bulk(RocksColumn*, int32_t key_bytes, int64_t row_bytes, RocksSource) = 0;
  virtual const char* verify() = 0;
  virtual const char* compact(RocksColumn*) = 0;
  virtual const char* catch_up() = 0;
  virtual int64_t bytes(RocksColumn*) const = 0;  ///< of its files
};

struct RocksPlugin {
  int64_t version;    ///< kRocksPlugin of the program that it was built with
  const char* about;  ///< "RocksDB 7.8.3"
  const char* (*open)(const RocksSettings&, RocksDatabase** database);
};

inline constexpr int64_t kRocksPlugin = 1;
inline constexpr const char* kRocksPluginFile = "libhuge_ctr_rocksdb.so";
/// The plug-in's one symbol: const RocksPlugin* ().
inline constexpr const char* kRocksPluginEntry = "hctr_rocksdb_plugin";

}  // namespace hctr
