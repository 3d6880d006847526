// The interface of the RocksDB plug-in, with plain types only: no exceptions and no containers.
//
// The plug-in (src/plugins/rocksdb) is a separate library that is loaded when a store has a level in RocksDB. The rest
// of the project builds and runs without RocksDB.
#pragma once

#include <cstdint>

namespace hctr {

enum class RocksOpening : int32_t {
  update,     ///< read and write, by one process at a time
  read_only,  ///< read a snapshot of the database
  follow      ///< read, and see another process's writes after catch_up()
};

struct RocksSettings {
  const char* path;
  const char* own_path;  ///< for `follow`: a folder for this reader's log
  RocksOpening opening;
  int32_t background_threads, reader_threads;
  int64_t cache_bytes;  ///< size of the block cache; 0: none
  bool direct_reads;    ///< whether reads bypass the page cache
};

/// Functions that can fail return an error text, or null. The text is valid until the same thread calls the plug-in
/// again. If data are damaged, the text begins with "Corruption".

/// A column family. Keeps its database open. Readers may still use a dropped column family.
class RocksColumn {
 public:
  virtual ~RocksColumn() = default;
};

/// Looks up the keys with found[i] == 0. The row of key i is written to rows + places[i] * stride; without `places`, to
/// rows + i * stride.
struct RocksRequest {
  const int64_t* keys;
  int64_t count;
  int32_t key_bytes;  ///< 8, or 4 for the lower half of the key
  const int32_t* places;
  float* rows;  ///< null: only checks whether rows exist
  int64_t stride, row_bytes;
  uint8_t* found;
};

/// A value to put; without a value, the key is removed. column null: the default column family.
struct RocksChange {
  RocksColumn* column;
  const void* key;
  int64_t key_bytes;
  const void* value;
  int64_t value_bytes;
};

/// Receives keys and values. `take` returns false to end the iteration.
struct RocksSink {
  void* self;
  bool (*take)(void* self, const void* key, int64_t key_bytes, const void* value, int64_t value_bytes);
};

enum class RocksNext : int32_t { row, end, failed };

/// Provides keys and rows, with keys in ascending byte order.
struct RocksSource {
  void* self;
  RocksNext (*next)(void* self, const void** key, const void** row);
};

/// Thread-safe, but changes must be serialized.
class RocksDatabase {
 public:
  virtual ~RocksDatabase() = default;
  /// Passes the names of all column families as keys, with empty values.
  virtual const char* columns(RocksSink) = 0;
  /// Opens a column family. If there is none and `create` is false, returns a null column.
  virtual const char* column(const char* name, bool create, RocksColumn** column) = 0;
  virtual const char* drop(RocksColumn*) = 0;
  virtual const char* get(RocksColumn*, const RocksRequest&, int64_t* hits) = 0;
  /// Passes all entries of the column whose keys begin with `start`. A null column means the default column family.
  virtual const char* each(RocksColumn*, const char* start, RocksSink) = 0;
  /// Writes all changes or none. The changes are on disk when the call returns.
  virtual const char* write(const RocksChange* changes, int64_t count) = 0;
  /// Adds sorted rows to an empty column, as files that are complete before they are added. Each source is read by its
  /// own thread; all its keys come before those of the next source. If a source fails, adds nothing.
  virtual const char* bulk(RocksColumn*, int32_t key_bytes, int64_t row_bytes, const RocksSource* sources,
                           int64_t count) = 0;
  virtual const char* verify() = 0;
  virtual const char* compact(RocksColumn*) = 0;
  virtual const char* catch_up() = 0;
  virtual int64_t bytes(RocksColumn*) const = 0;  ///< size of the column's files
};

struct RocksPlugin {
  int64_t version;    ///< kRocksPlugin as it was when the plug-in was built
  const char* about;  ///< library and version, such as "RocksDB 7.8.3"
  const char* (*open)(const RocksSettings&, RocksDatabase** database);
};

inline constexpr int64_t kRocksPlugin = 2;
inline constexpr const char* kRocksPluginFile = "libhuge_ctr_rocksdb.so";
/// The only exported symbol of the plug-in: const RocksPlugin* ().
inline constexpr const char* kRocksPluginEntry = "hctr_rocksdb_plugin";

}  // namespace hctr
