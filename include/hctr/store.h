// Embedding tables for inference: rows by key from levels in memory and files, with updates and versions.
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
  /// For memory: the maximum number of rows per table; others are read from the file below. 0: all rows.
  int64_t most_rows = 0;
  std::filesystem::path folder{};  ///< of file; one process at a time has it
  StoreRocksOptions rocksdb{};
  StoreRedisOptions redis{};
};

struct StoreOptions {
  /// In the order in which they are asked: memory, redis, and file or rocksdb; each may be left out.
  std::vector<StoreLevelOptions> levels = {StoreLevelOptions{}};
  int64_t update_rows_per_second = 0;  ///< maximum number of rows that updates change per second; 0: no limit
};

/// The result for a key without a row.
enum class OnMiss {
  default_vector,  ///< every element is StoreTableSource::default_value; the key is counted
  error            ///< Error(data) naming the key
};

/// Receives rows: slots [n] or empty, keys [n], rows [n, dim].
using StoreRowSink =
    std::function<void(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows)>;

/// The source of a table's rows: exactly one of these is set.
struct StoreTableSource {
  std::string name;
  int64_t dim = 0;
  bool by_slot = false;     ///< rows belong to slot and key
  float default_value = 0;  ///< value of each element, for keys without a row
  /// from huge_ctr or HugeCTR: a file of rows, or a folder with key and emb_vector
  std::filesystem::path model_file{};
  std::filesystem::path file{};             ///< Parquet with columns key and vector, or .safetensors with such arrays
  std::filesystem::path keys{}, vectors{};  ///< NumPy
  std::function<void(const StoreRowSink&)> rows{};  ///< by call
  bool in_level = false;  ///< the lowest level has them: another program wrote them there under HugeCTR's names
  std::string content{};  ///< equal for equal rows, as a checksum: such tables are shared by versions; empty: unknown
};

/// A version of a model to load.
struct StoreModel {
  std::string name, version;
  std::string run{};       ///< the id of the training run, from which deltas must come; empty: any run
  int64_t iteration = -1;  ///< iteration of its rows, on which the first delta builds; -1: unknown
  OnMiss on_miss = OnMiss::default_vector;
  ShowProgress progress{};  ///< of the rows that are loaded; null: nothing is shown
  std::vector<StoreTableSource> tables;
};

/// The rows of a table changed by an update.
struct StoreTableUpdate {
  std::string table;
  int32_t slot = 0;  ///< for a table whose rows belong to slot and key
  std::span<const int64_t> keys{};
  const float* rows = nullptr;  ///< [keys, dim]
  std::span<const int64_t> removed{};
};

struct StoreTableStatistics {
  std::string model, version, table;
  int64_t rows = 0;
  int64_t asked = 0, unique = 0;  ///< keys of requests; those keys without duplicates within a request
  int64_t defaults = 0;           ///< unique keys without a row
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
  int64_t iteration = -1;                                   ///< iteration of its rows, including updates so far
  int64_t updates = 0, updated_rows = 0, removed_rows = 0;  ///< since this process loaded the model
  double age_seconds = -1;  ///< seconds since the newest applied delta was written; -1: none applied
  int64_t waiting = 0;      ///< deltas found by update() but not applied
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
  /// With a level of files: opens its existing versions, with their updates. Errors: Error(config), Error(io),
  /// Error(data).
  explicit Store(const StoreOptions&);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Loads a version in addition to existing ones. It serves requests once it is activated, or at once if the model has
  /// no other version. Tables with the same content as an unchanged table of another version are shared with it.
  /// Errors: Error(usage) if the version exists; Error(data) naming what does not fit; Error(io). Nothing has changed
  /// then.
  void load(const StoreModel&);
  bool has(std::string_view model, std::string_view version = {}) const;
  /// Later requests use this version, newer or older. Existing views keep theirs.
  void activate(std::string_view model, std::string_view version);
  /// Waits for an update that runs. Errors: Error(usage) for the active version, unless it is the last.
  void unload(std::string_view model, std::string_view version);

  /// A view of the active version, which the view keeps. Errors: Error(usage) naming the existing models.
  StoreView view(std::string_view model) const;

  /// Applies a delta of training (docs/continuous_training.md) to the active version, completely or not at all. Returns
  /// false if it has been applied already. Errors: Error(data) if it does not build on this version, or is damaged;
  /// Error(io).
  bool apply_delta(std::string_view model, const std::filesystem::path& folder);
  /// Applies newer deltas at a snapshot_prefix, in order. Returns their number.
  int64_t update(std::string_view model, const std::string& prefix);
  /// Applies rows given by the caller, completely or not at all. `iteration`: the new iteration of the rows. Returns
  /// false without changes if it is not newer than the current one.
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
/// deltas applied: those of files, and those that a stream has now. A StoreStream applies later ones. Notes go to the
/// log of the surroundings. Errors: Error(config) with every problem; those of loading.
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
  /// The index of a table. Errors: Error(usage) naming the existing tables.
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
