// The options of an EmbeddingSet: tables, features, memory, ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/ranks.h"

namespace hctr {

/// How the vectors v of a bag of keys with weights w are combined: sum w v; sum w v / sum w; sum w v / sqrt(sum w^2);
/// the maximum of each element; or none: each key has its own vector. Without weights w is 1. A key without a row has
/// the vector 0, and counts in the divisor. An empty bag or a divisor of 0 gives 0.
enum class Pooling { sum, mean, sqrtn, max, none };

/// An optimizer of rows. Its defaults are those of a config; docs/embedding_set.md has the formulas.
struct HCTR_API EmbeddingOptimizer {
  enum class Rule { none, sgd, momentum_sgd, nesterov, adagrad, rmsprop, ftrl, adam, adamw, adamax, adadelta };
  /// Which rows a step changes: those of the batch; every row, with gradient 0 if absent; or those of the batch, which
  /// first catch up on the skipped updates (adam).
  enum class Rows { local, global, lazy_global };
  /// The variant of the formula. momentum_sgd and nesterov: whether the rate is inside the momentum; adagrad and
  /// rmsprop: whether epsilon is inside the root; adam, adamw and adamax: whether epsilon is corrected for the bias.
  enum class Formula { config, torch, keras };
  Rule rule = Rule::adam;
  Rows rows = Rows::local;
  Formula formula = Formula::config;
  float beta1 = 0.9f;                        ///< adam, adamw, adamax
  float beta2 = 0.999f;                      ///< adam, adamw, adamax
  float epsilon = 1e-7f;                     ///< adam, adamw, adamax, adagrad, rmsprop, adadelta
  float momentum = 0.9f;                     ///< momentum_sgd, nesterov
  float smoothing = 0.9f;                    ///< rmsprop, adadelta
  float initial = 0;                         ///< adagrad, ftrl: initial sum of squares
  bool row_wise = false;                     ///< adagrad: one sum per row
  float beta = 1, lambda1 = 0, lambda2 = 0;  ///< ftrl
  float weight_decay = 0.01f;                ///< adamw
  float most_gradient = 0;                   ///< gradients are clipped to this magnitude; 0: not clipped

  /// The formula and defaults of torch.optim (and of FBGEMM's adagrad, row-wise adagrad, adam), or of
  /// tf.keras.optimizers 3. Errors: Error(usage) for a rule that they do not have.
  static EmbeddingOptimizer torch(Rule);
  static EmbeddingOptimizer fbgemm(Rule, bool row_wise = false);
  static EmbeddingOptimizer keras(Rule);
};

/// The initial values of a row: uniform on [-value, value), normal with that standard deviation, that constant, or
/// uniform on +-1 / sqrt(rows) for a table with row numbers. They depend only on the seed, the table's name and the
/// key.
struct EmbeddingStart {
  enum class Kind { uniform, normal, constant, by_rows };
  Kind kind = Kind::uniform;
  float value = 0.05f;
};

/// The ranks of a group that own a table's rows. whole: one rank has all rows. spread: rank = key modulo number of
/// ranks. replicated: each rank has all rows, and applies the gradients of all. automatic: tables with row numbers that
/// fit into one rank's share are whole, each on the rank with the fewest bytes so far, largest first; so are tables
/// with most_rows; others are spread. A set without a group has all rows.
struct EmbeddingPlacement {
  enum class Where { automatic, whole, spread, replicated };
  Where where = Where::automatic;  ///< replicated: only for tables with row numbers
  int rank = -1;                   ///< for a whole table; -1: chosen as above
};

struct EmbeddingTableOptions {
  enum class WhenFull { error, evict_lru, evict_lfu, ignore };
  enum class Format { f32, f16, bf16 };  ///< two-byte rows are rounded at random, so that small updates are not lost
  std::string name;                      ///< also names its random stream
  int64_t dim = 0;                       ///< elements per row
  int64_t rows = 0;                      ///< row numbers 0 to rows - 1 are the keys; 0: any keys, each gets a row
  Format format = Format::f32;
  EmbeddingOptimizer optimizer{};
  EmbeddingStart initial{};
  EmbeddingPlacement placement{};
  // The following require hashed keys (rows = 0).
  int64_t most_rows = 0;  ///< 0: limited by memory only. Each rank gets its share of a spread table's limit
  WhenFull when_full = WhenFull::error;
  int64_t min_count = 1;         ///< occurrences after which a key gets a row
  double admit_probability = 1;  ///< probability that a key gets a row, for each bag with it
  int64_t expire_after = 0;      ///< rows whose key did not occur in this many batches are removed; 0: none
  bool marks_changes = false;    ///< required by export_changed_rows()
};

/// A list of keys for each sample, looked up in one table. Several features may share a table.
struct EmbeddingFeature {
  std::string name, table;
  Pooling pooling = Pooling::sum;
  bool weighted = false;  ///< its keys have weights; not with max and none
};

/// A caller's allocator of device memory. Used for batches, look-ups, and rows of tables with row numbers, whose size
/// is fixed. Rows of other tables grow at fixed addresses, which only the driver supports, as do rows that may move to
/// host memory or disk.
struct EmbeddingAllocator {
  /// Returns memory aligned to 256 bytes, usable by work on the stream; null if there is none left.
  void* (*allocate)(size_t bytes, void* stream, void* user) = nullptr;  ///< null: the driver allocates all memory
  void (*free)(void* memory, size_t bytes, void* stream, void* user) = nullptr;
  void* user = nullptr;
};

struct EmbeddingOptions {
  std::vector<EmbeddingTableOptions> tables;
  std::vector<EmbeddingFeature> features;  ///< in the order of the arrays passed to calls
  int gpu = -1;                            ///< -1: the CPU
  void* stream = nullptr;                  ///< the caller's cudaStream_t; null: the default stream
  int threads = 1;                         ///< of the CPU
  uint64_t seed = 0;
  int batches = 2;  ///< maximum batches between forward() and update()
  /// Maximum keys of a table in a batch. Addresses are reserved for them, and memory is allocated as needed; with a
  /// disk, all of it at once.
  int64_t most_keys = 1 << 24;
  /// Memory for rows, as "table_memory" of a config: the limit on the GPU (default: its free memory), the limit in host
  /// memory beyond that, and a folder for rows that fit into neither.
  std::optional<int64_t> device_bytes{};
  int64_t host_bytes = 0;
  std::filesystem::path disk{};
  int64_t disk_bytes = 0;
  /// The rank of this set, if several share the tables. All ranks make sets of the same tables, features, seed and
  /// number of batches; each has its own device, stream and memory.
  EmbeddingRank rank{};
  /// Called by the thread that calls the set; outlives it.
  EmbeddingAllocator allocator{};
};

}  // namespace hctr
