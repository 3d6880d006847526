#include "plugins/rocksdb/database.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <vector>

namespace hctr {
namespace {

namespace fs = std::filesystem;

/// Options for point look-ups of small rows: a Bloom filter and a hash index in each block, no compression, and index
/// and filters in memory.
rocksdb::Options options_for(const RocksSettings& settings) {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 4096;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.optimize_filters_for_memory = true;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;
  table.block_align = settings.direct_reads;  // with aligned blocks, a direct read of a row needs one page, not two
  if (settings.cache_bytes > 0)
    table.block_cache = rocksdb::NewLRUCache(static_cast<size_t>(settings.cache_bytes));
  else
    table.no_block_cache = true;
  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = true;
  options.create_if_missing = true;
  options.max_open_files = -1;
  options.use_direct_reads = settings.direct_reads;
  options.use_direct_io_for_flush_and_compaction = settings.direct_reads;
  options.keep_log_file_num = 2;
  // limit of the memory for unflushed writes, for all tables together
  options.db_write_buffer_size = size_t{256} << 20;
  options.max_total_wal_size = uint64_t{256} << 20;
  options.IncreaseParallelism(settings.background_threads);
  return options;
}

bool is_bulk_file(const fs::path& path) {
  return path.filename().string().starts_with("bulk_") && path.extension() == ".sst";
}

}  // namespace

const char* kept_problem(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

const char* problem_of(const rocksdb::Status& status) {
  return status.ok() ? nullptr : kept_problem(status.ToString());
}

OpenDatabase::~OpenDatabase() {
  readers.reset();
  if (db) db->Close();
}

const char* RocksDatabaseOf::open(const RocksSettings& settings, RocksDatabase** result) {
  const auto database = std::make_shared<OpenDatabase>();
  database->path = settings.path;
  database->settings = settings;
  database->options = options_for(settings);
  std::error_code error;
  if (settings.opening == RocksOpening::update) {
    fs::create_directories(database->path, error);
    if (error) return kept_problem("cannot create the folder '" + database->path + "': " + error.message());
  }
  std::vector<std::string> names;
  const bool there = fs::exists(fs::path(database->path) / "CURRENT", error);
  if (there) {
    const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(database->options, database->path, &names);
    if (!listed.ok()) return problem_of(listed);
  } else if (settings.opening != RocksOpening::update) {
    return kept_problem("there is no database in '" + database->path + "'");
  } else {
    names = {rocksdb::kDefaultColumnFamilyName};
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, database->options);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      settings.opening == RocksOpening::update
          ? rocksdb::DB::Open(database->options, database->path, families, &handles, &db)
      : settings.opening == RocksOpening::read_only
          ? rocksdb::DB::OpenForReadOnly(database->options, database->path, families, &handles, &db)
          : rocksdb::DB::OpenAsSecondary(database->options, database->path, settings.own_path, families, &handles, &db);
  if (!opened.ok()) return problem_of(opened);
  database->db.reset(db);
  database->readers = std::make_unique<ReaderThreads>(settings.reader_threads);
  auto made = std::make_unique<RocksDatabaseOf>();
  made->database_ = database;
  for (size_t i = 0; i < names.size(); ++i)
    made->columns_[names[i]] = std::make_shared<OpenColumn>(database, handles[i]);
  if (settings.opening == RocksOpening::update)  // remove the files of a bulk load whose process was killed
    for (const auto& entry : fs::directory_iterator(database->path, error))
      if (is_bulk_file(entry.path())) fs::remove(entry.path(), error);
  *result = made.release();
  return nullptr;
}

rocksdb::ColumnFamilyHandle* RocksDatabaseOf::handle_of(RocksColumn* column) const {
  return column ? static_cast<RocksColumnOf*>(column)->column->handle : database_->db->DefaultColumnFamily();
}

const char* RocksDatabaseOf::columns(RocksSink sink) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, column] : columns_)
    if (!sink.take(sink.self, name.data(), static_cast<int64_t>(name.size()), "", 0)) break;
  return nullptr;
}

const char* RocksDatabaseOf::column(const char* name, bool create, RocksColumn** result) {
  const std::lock_guard lock(mutex_);
  *result = nullptr;
  auto found = columns_.find(name);
  if (found == columns_.end()) {
    if (!create) return nullptr;
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    const rocksdb::Status made = database_->db->CreateColumnFamily(database_->options, name, &handle);
    if (!made.ok()) return problem_of(made);
    found = columns_.emplace(name, std::make_shared<OpenColumn>(database_, handle)).first;
  }
  *result = new RocksColumnOf(found->second);
  return nullptr;
}

const char* RocksDatabaseOf::drop(RocksColumn* column) {
  const std::lock_guard lock(mutex_);
  const rocksdb::Status dropped = database_->db->DropColumnFamily(handle_of(column));
  if (!dropped.ok()) return problem_of(dropped);
  std::erase_if(columns_, [&](const auto& one) { return one.second->handle == handle_of(column); });
  return nullptr;
}

const char* RocksDatabaseOf::each(RocksColumn* column, const char* start, RocksSink sink) {
  rocksdb::ReadOptions reading;
  reading.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at(database_->db->NewIterator(reading, handle_of(column)));
  for (at->Seek(start); at->Valid() && at->key().starts_with(start); at->Next())
    if (!sink.take(sink.self, at->key().data(), static_cast<int64_t>(at->key().size()), at->value().data(),
                   static_cast<int64_t>(at->value().size())))
      break;
  return problem_of(at->status());
}

const char* RocksDatabaseOf::write(const RocksChange* changes, int64_t count) {
  rocksdb::WriteBatch batch;
  const auto slice = [](const void* bytes, int64_t size) {
    return rocksdb::Slice(static_cast<const char*>(bytes), static_cast<size_t>(size));
  };
  for (int64_t i = 0; i < count; ++i) {
    const RocksChange& one = changes[i];
    const rocksdb::Slice key = slice(one.key, one.key_bytes);
    const rocksdb::Status added = one.value ? batch.Put(handle_of(one.column), key, slice(one.value, one.value_bytes))
                                            : batch.Delete(handle_of(one.column), key);
    if (!added.ok()) return problem_of(added);
  }
  rocksdb::WriteOptions writing;
  writing.sync = true;
  return problem_of(database_->db->Write(writing, &batch));
}

const char* RocksDatabaseOf::verify() { return problem_of(database_->db->VerifyChecksum(rocksdb::ReadOptions())); }

const char* RocksDatabaseOf::compact(RocksColumn* column) {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  return problem_of(database_->db->CompactRange(options, handle_of(column), nullptr, nullptr));
}

const char* RocksDatabaseOf::catch_up() { return problem_of(database_->db->TryCatchUpWithPrimary()); }

int64_t RocksDatabaseOf::bytes(RocksColumn* column) const {
  uint64_t files = 0, memory = 0;
  database_->db->GetIntProperty(handle_of(column), rocksdb::DB::Properties::kTotalSstFilesSize, &files);
  database_->db->GetIntProperty(handle_of(column), rocksdb::DB::Properties::kCurSizeAllMemTables, &memory);
  return static_cast<int64_t>(files + memory);
}

}  // namespace hctr

extern "C" __attribute__((visibility("default"))) const hctr::RocksPlugin* hctr_rocksdb_plugin() {
  static const std::string about = "RocksDB " + rocksdb::GetRocksVersionAsString(true);
  static const hctr::RocksPlugin plugin = {
      .version = hctr::kRocksPlugin, .about = about.c_str(), .open = hctr::RocksDatabaseOf::open};
  return &plugin;
}
