// A RocksDB database with a column family for each table.
#pragma once

#include <rocksdb/db.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/rocksdb/reader_threads.h"
#include "store/rocks_plugin.h"

namespace hctr {

/// Stores an error text for this thread, and returns it.
const char* kept_problem(std::string text);
const char* problem_of(const rocksdb::Status&);

/// The database, with the objects that must outlive its column families.
struct OpenDatabase {
  ~OpenDatabase();
  std::unique_ptr<rocksdb::DB> db{};
  rocksdb::Options options{};  // options of the database and its column families
  RocksSettings settings{};
  std::string path{};
  std::unique_ptr<ReaderThreads> readers{};
};

struct OpenColumn {
  OpenColumn(std::shared_ptr<OpenDatabase> in, rocksdb::ColumnFamilyHandle* of) : database(std::move(in)), handle(of) {}
  OpenColumn(const OpenColumn&) = delete;
  OpenColumn& operator=(const OpenColumn&) = delete;
  ~OpenColumn() { database->db->DestroyColumnFamilyHandle(handle); }
  std::shared_ptr<OpenDatabase> database;
  rocksdb::ColumnFamilyHandle* handle;
};

struct RocksColumnOf : RocksColumn {
  explicit RocksColumnOf(std::shared_ptr<OpenColumn> of) : column(std::move(of)) {}
  std::shared_ptr<OpenColumn> column;
};

class RocksDatabaseOf : public RocksDatabase {
 public:
  static const char* open(const RocksSettings&, RocksDatabase** database);

  const char* columns(RocksSink) override;
  const char* column(const char* name, bool create, RocksColumn** column) override;
  const char* drop(RocksColumn*) override;
  const char* get(RocksColumn*, const RocksRequest&, int64_t* hits) override;
  const char* each(RocksColumn*, const char* start, RocksSink) override;
  const char* write(const RocksChange* changes, int64_t count) override;
  const char* bulk(RocksColumn*, int32_t key_bytes, int64_t row_bytes, const RocksSource* sources,
                   int64_t count) override;
  const char* verify() override;
  const char* compact(RocksColumn*) override;
  const char* catch_up() override;
  int64_t bytes(RocksColumn*) const override;

 private:
  rocksdb::ColumnFamilyHandle* handle_of(RocksColumn*) const;

  std::shared_ptr<OpenDatabase> database_;
  std::mutex mutex_;  // guards columns_
  std::map<std::string, std::shared_ptr<OpenColumn>> columns_;
};

}  // namespace hctr
