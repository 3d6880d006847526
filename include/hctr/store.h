// Embedding tables for inference: looks up rows by key in several levels (memory, Redis, files), with versions and
// updates.
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

/// How tables are named in databases. own: names include the version. hugectr: the names of HugeCTR's parameter server,
/// which has one version of a table at a time; HugeCTR and this store can share such a database.
enum class StoreNames { own, hugectr };

struct StoreRocksOptions {
  enum class Opening {
    update,     ///< reads and writes; only one process at a time may open the store so
    read_only,  ///< reads the state at the time of opening
    follow      ///< reads; Store::refresh() adopts changes that the updating process has made
  };
  std::filesystem::path folder{};
  Opening opening = Opening::update;
  std::filesystem::path own_folder{};  ///< for `follow`: folder for the log of this process
  StoreNames names = StoreNames::own;
  int32_t key_bytes = 8;  ///< bytes per key: 8, or 4 for HugeCTR's 32-bit keys
  int64_t cache_bytes = int64_t{64} << 20;
  bool direct_reads = false;  ///< bypasses the page cache
  int32_t reader_threads = 8, background_threads = 4;
};

/// A Redis server, or a Redis cluster, whose nodes are discovered. Above a disk level, Redis is a cache, and the disk
/// level answers missing keys. As the lowest level, Redis must have all rows. Either this process loads them, or
/// another program has written them (StoreTableSource::in_level). A node that has lost rows causes Error(io). With
/// StoreNames::own, a process removes its rows when it ends.
struct StoreRedisOptions {
  enum class Eviction { random, least_used, oldest };
  std::vector<std::string> addresses = {"127.0.0.1:6379"};  ///< host:port of some nodes
  std::string user{}, password{};
  bool tls = false;
  std::string ca{};  ///< file or folder of CA certificates; empty: the system's
  std::string certificate{}, key{}, server_name{};
  StoreNames names = StoreNames::own;
  int32_t key_bytes = 8;    ///< bytes per key: 8, or 4 for HugeCTR's 32-bit keys
  int32_t partitions = 16;  ///< Redis hashes per table; StoreNames::own adds more for a large table
  int32_t connections = 4;  ///< number of connections to each node
  int32_t timeout_ms = 500;
  bool read_replicas = false;  ///< if a master does not answer, reads from its replicas, whose rows may be older
  bool keep_rows = false;      ///< StoreNames::hugectr: opening a table keeps the existing rows
  // The fields below apply only if the Redis level is above another level.

  /// Maximum rows of a partition; 0: all rows. Beyond this limit, rows are evicted down to most_rows * evict_to.
  int64_t most_rows = 0;
  Eviction eviction = Eviction::random;
  double evict_to = 0.8;
  int64_t expire_seconds = 0;  ///< a partition expires this long after its last change; 0: never
  bool keep_missed = true;     ///< adds the rows that a lower level has returned for missing keys
  bool fill = true;            ///< adds all rows of a table when the table is loaded
};

struct StoreLevelOptions {
  enum class Kind { memory, redis, file, rocksdb };
  Kind kind = Kind::memory;
  /// memory: the maximum number of rows per table; other rows are read from the level below. 0: all rows.
  int64_t most_rows = 0;
  std::filesystem::path folder{};  ///< file: the folder, which only one process at a time may open
  StoreRocksOptions rocksdb{};
  StoreRedisOptions redis{};
  /// memory: a name of 1 to 100 letters, digits, '.', '_' and '-'. The processes of a host that give this name share
  /// one copy of the rows, as the only level. One of these processes loads and updates the rows. In the other
  /// processes, refresh() adopts the last commit, and takes over the updates when the updating process has ended.
  /// Empty: the memory of this process.
  std::string shared{};
};

/// A GPU cache above the levels of a store (hctr/store_cache.h). At most one of `bytes`, `most_rows` and `share` is
/// set; if none is set, a cache takes two fifths of the GPU's memory, but at most four fifths of the free memory.
struct StoreCacheOptions {
  enum class Rows { f32, f16, bf16, fp8, int8 };  ///< fp8 (e4m3) and int8 have one scale per row
  static constexpr int kGpuIfAny = -2;
  /// -1: no GPU, the store's levels answer all keys; kGpuIfAny: GPU 0, or no GPU if this machine has none
  int gpu = 0;
  /// GPU memory for rows and their index. While activate() runs, two caches exist.
  int64_t bytes = 0;
  int64_t most_rows = 0;  ///< maximum number of each table's rows in the cache
  double share = 0;       ///< maximum fraction of each table's rows in the cache
  Rows rows = Rows::f32;
  int admit_after = 2;  ///< a key's row is added to the cache when this many requests have missed the key
  /// Keys that the cache lacks get the default row, without waiting for the store; statistics count these keys. Their
  /// rows are added to the cache later, as with `admit_after`.
  bool default_on_miss = false;
  /// maximum time that a request waits for a running update; after it, the request bypasses the cache
  int wait_ms = 100;
  /// whether a machine without a GPU is an error if the library chooses the device (kGpuIfAny, DeviceChoice::automatic)
  bool needs_gpu = false;
};

struct StoreOptions {
  /// Levels in look-up order: memory, redis, and file or rocksdb; each may be omitted.
  std::vector<StoreLevelOptions> levels = {StoreLevelOptions{}};
  int64_t update_rows_per_second = 0;  ///< maximum number of rows that updates change per second; 0: no limit
  /// The GPU cache for models that use this store's tables, and for each StoreCache that is made without options.
  StoreCacheOptions cache = {.gpu = StoreCacheOptions::kGpuIfAny};
};

/// The result for a key without a row.
enum class OnMiss {
  default_vector,  ///< every element is StoreTableSource::default_value; statistics count the key
  error            ///< the look-up throws Error(data), which names the key
};

/// Receives rows: slots [n] or empty, keys [n], rows [n, dim].
using StoreRowSink =
    std::function<void(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows)>;

/// Rows for benchmarks, made in memory: the keys 0 to rows - 1, and elements that are uniform in [-1/sqrt(dim),
/// 1/sqrt(dim)). A row is a function of the seed, the table's name and the key.
struct StoreRandomRows {
  int64_t rows = 0;  ///< number of rows; 0: the table has another source
  uint64_t seed = 0;
};

/// The source of a table's rows: exactly one of model_file, file, keys with vectors, rows, random, and in_level is set.
struct StoreTableSource {
  std::string name;
  int64_t dim = 0;
  bool by_slot = false;     ///< whether rows belong to (slot, key) pairs instead of keys
  float default_value = 0;  ///< value of each element for keys without a row
  /// A model file of huge_ctr or HugeCTR: a file of rows, or a folder with key and emb_vector.
  std::filesystem::path model_file{};
  /// Parquet with columns key and vector, or .safetensors with arrays of these names
  std::filesystem::path file{};
  std::filesystem::path keys{}, vectors{};          ///< NumPy files
  std::function<void(const StoreRowSink&)> rows{};  ///< a function that passes the rows to a sink
  /// expected number of rows that `rows` passes, to reserve memory for; 0: unknown
  int64_t expected = 0;
  StoreRandomRows random{};
  /// whether the lowest level already has the rows, because another program wrote them under HugeCTR's names
  bool in_level = false;
  /// identifies the rows, like a checksum. Versions share tables of equal content; empty: unknown
  std::string content{};
};

/// A version of a model to load.
struct StoreModel {
  std::string name, version;
  std::string run{};       ///< id of the training run whose deltas are accepted; empty: any run
  int64_t iteration = -1;  ///< iteration of the rows, on which the first delta must build; -1: unknown
  OnMiss on_miss = OnMiss::default_vector;
  ShowProgress progress{};  ///< shows how many rows are loaded; null: nothing is shown
  std::vector<StoreTableSource> tables;
};

/// An update of one table: changed rows and removed keys.
struct StoreTableUpdate {
  std::string table;
  int32_t slot = 0;  ///< the slot of the rows, for a table with `by_slot`
  std::span<const int64_t> keys{};
  const float* rows = nullptr;  ///< [keys, dim]
  std::span<const int64_t> removed{};
};

struct StoreTableStatistics {
  std::string model, version, table;
  int64_t rows = 0;
  int64_t asked = 0, unique = 0;  ///< asked: requested keys; unique: the same without duplicates in a request
  int64_t defaults = 0;           ///< unique keys without a row
  struct Level {
    std::string name;
    int64_t rows = 0, bytes = 0, asked = 0, found = 0;
    /// Keys that the level failed to look up, so that lower levels answered, plus changes that the level failed to
    /// store.
    int64_t failed = 0;
  };
  std::vector<Level> levels{};
};

struct StoreModelStatistics {
  std::string model, version;
  bool active = false;
  int64_t iteration = -1;                                   ///< iteration of the rows, after all updates so far
  int64_t updates = 0, updated_rows = 0, removed_rows = 0;  ///< counts since this process loaded the model
  double age_seconds = -1;  ///< seconds since the newest applied delta was published; -1: none applied
  int64_t waiting = 0;      ///< number of deltas that update() has found, but has not applied
};

class StoreView;

/// Thread-safe. Look-ups take no locks that updates hold, and each look-up reads one state of its version: before or
/// after an update, never a part of it. Updates run one after another. While an update waits for look-ups or because of
/// update_rows_per_second, other threads can load and activate versions, except in shared memory.
class HCTR_API Store {
 public:
  /// With a disk level, opens the existing versions, including their updates. Errors: Error(config), Error(io),
  /// Error(data).
  explicit Store(const StoreOptions&);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Loads a version in addition to existing versions. The version serves requests after activate(), or immediately if
  /// it is the model's only version. Versions share tables of equal content that no update has changed. Errors:
  /// Error(usage) if the version exists; Error(data) naming what is wrong; Error(io). An error changes nothing.
  void load(const StoreModel&);
  bool has(std::string_view model, std::string_view version = {}) const;
  /// Later requests use this version, which may be newer or older. Existing views keep their version.
  void activate(std::string_view model, std::string_view version);
  /// Removes a version, after a running update has finished. Errors: Error(usage) for the active version, unless it is
  /// the model's only version.
  void unload(std::string_view model, std::string_view version);

  /// Returns a view of the active version. The view keeps this version alive. Errors: Error(usage) naming the existing
  /// models.
  StoreView view(std::string_view model) const;

  /// Applies a delta of training (docs/continuous_training.md) to the active version, completely or not at all. Returns
  /// false if the delta was applied before. Errors: Error(data) if the delta does not build on this version, or is
  /// damaged; Error(io).
  bool apply_delta(std::string_view model, const std::filesystem::path& folder);
  /// Applies newer deltas at a snapshot_prefix, in order. Returns the number of applied deltas.
  int64_t update(std::string_view model, const std::string& prefix);
  /// Applies rows of the caller, completely or not at all. `iteration`: the iteration after the update. Returns false,
  /// without changes, if `iteration` is not newer than the current iteration.
  bool apply(std::string_view model, int64_t iteration, std::span<const StoreTableUpdate>);

  /// For a store whose lowest level is updated by another process, adopts the committed changes of that process.
  /// Returns whether there were any.
  bool refresh();
  /// Whether this process may load and update. false: another process does so, or the store is open read-only.
  bool writable() const;
  /// With shared memory: whether the updating process is still loading models. That process calls loaded() when it has
  /// loaded all of them.
  bool loading() const;
  void loaded();
  /// Applies a delta of a stream (hctr/delta_stream.h) like apply_delta(). `position` is stored in the same commit. A
  /// whole model replaces all rows.
  bool apply(std::string_view model, const StreamedDelta&, std::string_view position);
  /// Applies rows without an iteration, and stores `position` in the same commit.
  void apply(std::string_view model, std::span<const StoreTableUpdate>, std::string_view position);
  /// The last position stored with the active version; empty: none.
  std::string position(std::string_view model) const;
  /// Returns StoreOptions::cache.
  const StoreCacheOptions& cache_options() const;
  /// The id of the training run of the active version; empty: unknown.
  std::string run(std::string_view model) const;

  std::vector<StoreModelStatistics> models() const;
  std::vector<StoreTableStatistics> tables() const;
  /// Reads every row of the disk level. Returns the number of rows. Errors: Error(data) naming what is damaged.
  int64_t verify();
  /// Rewrites the files of the disk level without free slots. Returns the bytes freed.
  int64_t compact();

  struct HCTR_HIDDEN State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Opens the store that a store.json, or the ps.json of HugeCTR's parameter server, describes. `text`: the content of
/// the config; empty: the file is read. `loads`: loads the config's models that the store lacks, activates the config's
/// versions, and applies the deltas that files and streams contain now. A StoreStream applies later deltas. Notes go to
/// the log of the surroundings. Errors: Error(config) with every problem; those of loading.
HCTR_API Store open_store(const std::filesystem::path& config, const std::string& text = "", bool loads = true,
                          const Surroundings& = {});

/// One version of a model. Copies are cheap.
class HCTR_API StoreView {
 public:
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

  /// Each call makes a StoreReading for itself alone, and calls its member of the same name.
  int64_t get(size_t table, std::span<const int64_t> keys, float* rows, int64_t stride = 0, uint8_t* found = nullptr,
              int32_t slot = 0) const;
  int64_t get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets, Pooling,
                     float* vectors, int64_t stride = 0, int32_t slot = 0) const;

  struct HCTR_HIDDEN Version;
  explicit StoreView(std::shared_ptr<const Version>);
  const std::shared_ptr<const Version>& state() const { return version_; }

 private:
  std::shared_ptr<const Version> version_;
};

/// Look-ups in any number of tables. All of them read one state of the version: before or after an update, never a part
/// of it. An update waits until the StoreReadings that read the older state are destroyed. Destroy a StoreReading after
/// one answer, and do not change the store from a thread that has one. Thread-safe.
class HCTR_API StoreReading {
 public:
  explicit StoreReading(const StoreView&);
  ~StoreReading();
  StoreReading(StoreReading&&) noexcept;
  StoreReading& operator=(StoreReading&&) noexcept;

  int64_t iteration() const;  ///< iteration of the rows; -1: unknown

  /// Sets row i to the row of keys[i], or to the default vector. `slot`: for a table with `by_slot`. `stride`: elements
  /// between the starts of two rows; 0: dim. `found`, which may be null: [keys]. Returns the number of distinct keys
  /// without a row.
  int64_t get(size_t table, std::span<const int64_t> keys, float* rows, int64_t stride = 0, uint8_t* found = nullptr,
              int32_t slot = 0) const;
  /// Appends the rows of the distinct keys to `rows`, and sets row_of [keys] to their row numbers in `rows`. Row 0
  /// means "no row", and must be in `rows` before the call, because a key without a row gets number 0. Returns the
  /// number of distinct keys without a row.
  int64_t get_rows(size_t table, std::span<const int64_t> keys, std::vector<float>& rows, int32_t* row_of,
                   int32_t slot = 0) const;
  /// Pools the rows of keys [offsets[b], offsets[b + 1]) into vector b: their sum, in the order of the keys, divided by
  /// the number of keys (mean) or its square root (sqrtn). An empty bag gives 0. A key without a row contributes the
  /// default vector. Returns the number of distinct keys without a row.
  int64_t get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets, StoreView::Pooling,
                     float* vectors, int64_t stride = 0, int32_t slot = 0) const;

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
