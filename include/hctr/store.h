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

namespace hctr {

struct StoreLevelOptions {
  enum class Kind { memory, file };
  Kind kind = Kind::memory;
  /// For memory: the maximum number of rows per table; others are read from the file below. 0: all rows.
  int64_t most_rows = 0;
  std::filesystem::path folder{};  ///< for file; used by one process at a time
};

struct StoreOptions {
  /// In look-up order: memory, file, or memory above file.
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
  std::string content{};  ///< equal for equal rows, such as a checksum: versions share such tables; empty: unknown
};

/// A version of a model to load.
struct StoreModel {
  std::string name, version;
  std::string run{};       ///< the id of the training run, from which deltas must come; empty: any run
  int64_t iteration = -1;  ///< iteration of its rows, on which the first delta builds; -1: unknown
  OnMiss on_miss = OnMiss::default_vector;
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

class StoreView;

/// Any thread may call any member. Look-ups take no locks that updates hold: each row of an answer is consistent, as
/// left by one of the updates. Updates, loads and activations are serialized.
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
  /// Errors: Error(usage) for the active version, unless it is the last.
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

  std::vector<StoreModelStatistics> models() const;
  std::vector<StoreTableStatistics> tables() const;
  /// Verifies every row of the level of files. Returns the number of rows. Errors: Error(data) naming the damaged file,
  /// key or record.
  int64_t verify();
  /// Rewrites files without free records. Returns the bytes freed.
  int64_t compact();

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

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

  /// Row i is that of keys[i], or the default vector. `slot`: for a table whose rows belong to slot and key. `stride`:
  /// elements from one row to the next; 0: dim. `found`: [keys], may be null. Returns the number of keys without a row.
  int64_t get(size_t table, std::span<const int64_t> keys, float* rows, int64_t stride = 0, uint8_t* found = nullptr,
              int32_t slot = 0) const;
  /// Vector b pools the rows of keys [offsets[b], offsets[b + 1]): their sum, in the order of the keys, optionally
  /// divided by their number or its square root. An empty bag gives 0; a key without a row adds the default vector.
  int64_t get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets, Pooling,
                     float* vectors, int64_t stride = 0, int32_t slot = 0) const;

 private:
  friend class Store;
  explicit StoreView(std::shared_ptr<const Version>);
  std::shared_ptr<const Version> version_;
};

}  // namespace hctr
