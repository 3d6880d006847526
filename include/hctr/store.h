// Tables of embeddings for inference: rows by key from levels of memory and files, with updates and versions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/export.h"
#include "hctr/surroundings.h"

namespace hctr {

struct StreamedDelta;

/// How tables are named in databases: with versions, or as HugeCTR's parameter server names them, which has one version
/// of a table at a time and so can share a database with this store.
enum class StoreNames { own, hugectr };

struct StoreRocksOptions {
  enum class Opening {
    update,     ///< one process at a time
    read_only,  ///< as the database is when it is opened
    follow      ///< reads, and sees with Store::refresh() what the process has done that updates it
  };
  std::filesystem::path folder{};
  Opening opening = Opening::update;
  std::filesystem::path own_folder{};  ///< of follow: for the log of this reader
  StoreNames names = StoreNames::own;
  int32_t key_bytes = 8;  ///< 8, or 4 as HugeCTR has 32-bit keys
  int64_t cache_bytes = int64_t{64} << 20;
  bool direct_reads = false;  ///< past the page cache
  int32_t reader_threads = 8, background_threads = 4;
};

/// A server, or a cluster, which is discovered. Above a level on a disk it is a cache: what it cannot answer, that
/// answers. As the lowest level it has all rows, for as long as this process loads them there.
struct StoreRedisOptions {
  enum class Eviction { random, least_used, oldest };
  std::vector<std::string> addresses = {"127.0.0.1:6379"};  ///< host:port, of some nodes
  std::string user{}, password{};
  bool tls = false;
  std::string ca{};  ///< a file or a folder of certificates; empty: those of the system
  std::string certificate{}, key{}, server_name{};
  StoreNames names = StoreNames::own;
  int32_t key_bytes = 8;    ///< 8, or 4 as HugeCTR has 32-bit keys
  int32_t partitions = 16;  ///< of a table, each a hash; with own names more where a table is large
  int32_t connections = 4;  ///< to each node
  int32_t timeout_ms = 500;
  bool read_replicas = false;  ///< replicas, which may be behind, answer while their master does not
  bool keep_rows = false;      ///< with HugeCTR's names: rows that are there when a table is opened stay
  // Above another level.
  int64_t most_rows = 0;  ///< of a partition; 0: all. Beyond, rows are evicted down to most_rows * evict_to
  Eviction eviction = Eviction::random;
  double evict_to = 0.8;
  int64_t expire_seconds = 0;  ///< a partition goes when it was not changed for so long; 0: never
  bool keep_missed = true;     ///< keeps rows that levels below have answered
  bool fill = true;            ///< has all rows at first
};

struct StoreLevelOptions {
  enum class Kind { memory, redis, file, rocksdb };
  Kind kind = Kind::memory;
  /// Of memory: at most so many rows of each table, the others are read from the file below; 0: all.
  int64_t most_rows = 0;
  std::filesystem::path folder{};  ///< of file; one process at a time has it
  StoreRocksOptions rocksdb{};
  StoreRedisOptions redis{};
};

struct StoreOptions {
  /// In the order in which they are asked: memory, redis, and file or rocksdb; each may be left out.
  std::vector<StoreLevelOptions> levels = {StoreLevelOptions{}};
  int64_t update_rows_per_second = 0;  ///< the most rows that updates change in a second; 0: no limit
};

/// What a key without a row gives.
enum class OnMiss {
  default_vector,  ///< every element is StoreTableSource::default_value; counted
  error            ///< Error(data) naming the key
};

/// Passes rows on: slots [n] or empty, keys [n], rows [n, dim].
using StoreRowSink =
    std::function<void(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows)>;

/// Where the rows of a table come from: one of these is given.
struct StoreTableSource {
  std::string name;
  int64_t dim = 0;
  bool by_slot = false;                ///< rows belong to slot and key
  float default_value = 0;             ///< of each element, for keys without a row
  std::filesystem::path model_file{};  ///< of ours or of HugeCTR: a file of rows, or a folder with key and emb_vector
  std::filesystem::path file{};        ///< Parquet with columns key and vector, or .safetensors with such arrays
  std::filesystem::path keys{}, vectors{};          ///< NumPy
  std::function<void(const StoreRowSink&)> rows{};  ///< by call
  bool in_level = false;  ///< the lowest level has them: another program wrote them there under HugeCTR's names
  std::string content{};  ///< equal for equal rows, as a checksum: such tables are shared by versions; empty: unknown
};

/// A version of a model, to be loaded.
struct StoreModel {
  std::string name, version;
  std::string run{};       ///< the id of the run that trained it; deltas must be of it. Empty: deltas of any
  int64_t iteration = -1;  ///< that its rows are of; the first delta builds on it. -1: not known
  OnMiss on_miss = OnMiss::default_vector;
  ShowProgress progress{};  ///< of the rows that are loaded; null: nothing is shown
  std::vector<StoreTableSource> tables;
};

/// Rows of a table that an update changes.
struct StoreTableUpdate {
  std::string table;
  int32_t slot = 0;  ///< of a table whose rows belong to slot and key
  std::span<const int64_t> keys{};
  const float* rows = nullptr;  ///< [keys, dim]
  std::span<const int64_t> removed{};
};

struct StoreTableStatistics {
  std::string model, version, table;
  int64_t rows = 0;
  int64_t asked = 0, unique = 0;  ///< keys of requests, with and without duplicates of a request
  int64_t defaults = 0;           ///< of the unique ones, those without a row
  struct Level {
    std::string name;
    int64_t rows = 0, bytes = 0, asked = 0, found = 0;
    int64_t failed = 0;  ///< keys and changes that the level could not take: levels below have answered
  };
  std::vector<Level> levels{};
};

struct StoreModelStatistics {
  std::string model, version;
  bool active = false;
  int64_t iteration = -1;                                   ///< of its rows, with the updates so far
  int64_t updates = 0, updated_rows = 0, removed_rows = 0;  ///< since this process has the model
  double age_seconds = -1;  ///< since the newest applied delta was written; -1: none was
  int64_t waiting = 0;      ///< deltas that update() saw and has not applied
};

class Store;
class StoreCache;
class StoreReading;
class StoreView;
struct Device;
struct StoreCacheOptions;
StoreCache cache_on(const Store&, std::string_view, const StoreCacheOptions&, const Device*);

/// Any thread calls any member. Look-ups take no locks that updates hold, and each answer is of one state of its
/// version: before or after any update, whole. Updates follow each other; while they wait, as update_rows_per_second
/// says, others load and activate versions.
class HCTR_API Store {
 public:
  /// With a level of files: opens what is there, with the versions and updates that it had. Errors: Error(config),
  /// Error(io), Error(data).
  explicit Store(const StoreOptions&);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Loads a version beside those that are there; it answers once it is activated, and at once where the model has no
  /// other. Tables with the content of one that another version of the model has, unchanged, are shared with it.
  /// Errors: Error(usage) where there is such a version; Error(data) naming what does not fit; Error(io). Nothing has
  /// changed then.
  void load(const StoreModel&);
  bool has(std::string_view model, std::string_view version = {}) const;
  /// Requests from now on get this version; a newer or an older one. Views go on with the one they have.
  void activate(std::string_view model, std::string_view version);
  /// Waits for an update that runs. Errors: Error(usage) for the active version, unless it is the last.
  void unload(std::string_view model, std::string_view version);

  /// The active version, as long as the view lives. Errors: Error(usage) naming the models there are.
  StoreView view(std::string_view model) const;

  /// Applies a delta of training (docs/continuous_training.md) to the active version, whole. Returns false where it is
  /// applied already. Errors: Error(data) where it does not build on what is there, or is damaged: nothing has changed
  /// then; Error(io).
  bool apply_delta(std::string_view model, const std::filesystem::path& folder);
  /// Applies those at a snapshot_prefix that are newer, in their order. Returns how many.
  int64_t update(std::string_view model, const std::string& prefix);
  /// Applies an update by call, whole. `iteration`: that the rows are of then; one that is not newer than what is there
  /// is not applied: returns false.
  bool apply(std::string_view model, int64_t iteration, std::span<const StoreTableUpdate>);

  /// Of a store whose lowest level another process updates: takes over what that has committed. Returns whether it has.
  bool refresh();
  /// Applies a delta of a stream (hctr/delta_stream.h) as one of training. `position` is stored in the same commit. A
  /// whole model replaces all rows.
  bool apply(std::string_view model, const StreamedDelta&, std::string_view position);
  /// Applies rows that belong to no iteration, and stores `position` with them.
  void apply(std::string_view model, std::span<const StoreTableUpdate>, std::string_view position);
  /// The last position stored with the active version; empty: none was.
  std::string position(std::string_view model) const;
  /// The id of the run that trained the active version; empty: not known.
  std::string run(std::string_view model) const;

  std::vector<StoreModelStatistics> models() const;
  std::vector<StoreTableStatistics> tables() const;
  /// Reads every row of the level on a disk. Returns their number. Errors: Error(data) naming what is damaged.
  int64_t verify();
  /// Writes files of that level anew without free places. Returns the bytes freed.
  int64_t compact();

 private:
  friend class StoreCache;
  friend StoreCache cache_on(const Store&, std::string_view, const StoreCacheOptions&, const Device*);
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

/// The store that a store.json, or the ps.json of HugeCTR's parameter server, describes. `text`: of the file; empty: it
/// is read. `loads`: whether models of the file that the store lacks are loaded, its versions activated, and their
/// deltas applied. Notes go to the log of the surroundings. Errors: Error(config) with every problem; those of loading.
HCTR_API Store open_store(const std::filesystem::path& config, const std::string& text = "", bool loads = true,
                          const Surroundings& = {});

/// One version of a model. Cheap to copy.
class HCTR_API StoreView {
 public:
  struct HCTR_HIDDEN Version;
  enum class Pooling { sum, mean, sqrtn };
  struct Table {
    std::string name;
    int64_t dim;
    bool by_slot;
    float default_value;
  };
  std::string version() const;
  std::vector<Table> tables() const;
  /// The number of a table. Errors: Error(usage) naming those there are.
  size_t table(std::string_view name) const;

  /// A StoreReading of this call alone.
  int64_t get(size_t table, std::span<const int64_t> keys, float* rows, int64_t stride = 0, uint8_t* found = nullptr,
              int32_t slot = 0) const;
  int64_t get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets, Pooling,
                     float* vectors, int64_t stride = 0, int32_t slot = 0) const;

 private:
  friend class Store;
  friend class StoreCache;
  friend StoreCache cache_on(const Store&, std::string_view, const StoreCacheOptions&, const Device*);
  friend class StoreReading;
  explicit StoreView(std::shared_ptr<const Version>);
  std::shared_ptr<const Version> version_;
};

/// The look-ups of one answer, in any tables: all of one state of the version, before or after any update, whole. An
/// update waits for its end, so it lasts as long as an answer, and a thread that has one changes nothing in the store.
/// Any number of threads use it.
class HCTR_API StoreReading {
 public:
  explicit StoreReading(const StoreView&);
  ~StoreReading();
  StoreReading(StoreReading&&) noexcept;
  StoreReading& operator=(StoreReading&&) noexcept;

  int64_t iteration() const;  ///< that the rows are of; -1: not known

  /// Row i is that of keys[i], or the default vector. `slot`: of a table whose rows belong to slot and key. `stride`:
  /// elements from one row to the next; 0: dim. `found`, which may be null: [keys]. Returns how many keys have no row.
  int64_t get(size_t table, std::span<const int64_t> keys, float* rows, int64_t stride = 0, uint8_t* found = nullptr,
              int32_t slot = 0) const;
  /// Appends the rows of the keys to `rows`, each once, and sets row_of [keys] to their numbers there. `rows` begins
  /// with a row that stands for none: a key without one has number 0. Returns how many keys have no row.
  int64_t get_rows(size_t table, std::span<const int64_t> keys, std::vector<float>& rows, int32_t* row_of,
                   int32_t slot = 0) const;
  /// Vector b is made of the rows of keys [offsets[b], offsets[b + 1]): their sum, in the order of the keys, divided by
  /// their number or its square root. An empty bag gives 0, and so does a key without a row where the default is 0.
  int64_t get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets, StoreView::Pooling,
                     float* vectors, int64_t stride = 0, int32_t slot = 0) const;

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
