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

/// How an embedding combines the vectors v of a bag, with weights w. sum: sum(w v). mean: sum(w v) / sum(w). sqrtn:
/// sum(w v) / sqrt(sum(w^2)). max: the maximum of each element. none: each key has its own vector. Unweighted keys have
/// w = 1. A key without a row has vector 0, and its weight counts in the divisor. An empty bag or a divisor of 0 gives
/// 0.
enum class Pooling { sum, mean, sqrtn, max, none };

/// The optimizer of a table's rows. Defaults are those of a config; docs/embedding_set.md has the formulas.
struct HCTR_API EmbeddingOptimizer {
  enum class Rule { none, sgd, momentum_sgd, nesterov, adagrad, rmsprop, ftrl, adam, adamw, adamax, adadelta };
  /// Which rows a step changes. local: the rows of the batch. global: every row, with gradient 0 for rows that are not
  /// in the batch. lazy_global (adam): the rows of the batch, after they catch up on skipped updates.
  enum class Rows { local, global, lazy_global };
  /// The variant of the formula. For momentum_sgd and nesterov: whether the momentum includes the learning rate. For
  /// adagrad and rmsprop: whether epsilon is inside the root. For adam, adamw and adamax: whether epsilon is
  /// bias-corrected.
  enum class Formula { config, torch, keras };
  Rule rule = Rule::adam;
  Rows rows = Rows::local;
  Formula formula = Formula::config;
  float beta1 = 0.9f;                        ///< for adam, adamw, adamax
  float beta2 = 0.999f;                      ///< for adam, adamw, adamax
  float epsilon = 1e-7f;                     ///< for adam, adamw, adamax, adagrad, rmsprop, adadelta
  float momentum = 0.9f;                     ///< for momentum_sgd, nesterov
  float smoothing = 0.9f;                    ///< for rmsprop, adadelta
  float initial = 0;                         ///< for adagrad, ftrl: initial sum of squares
  bool row_wise = false;                     ///< for adagrad: one sum per row, not per element
  float beta = 1, lambda1 = 0, lambda2 = 0;  ///< for ftrl
  float weight_decay = 0.01f;                ///< for adamw
  float most_gradient = 0;                   ///< gradients are clipped to this magnitude; 0: no clipping

  /// torch(): formula and defaults of torch.optim. fbgemm(): torch.optim's formula with FBGEMM's variants of sgd,
  /// adagrad and adam. keras(): formula and defaults of tf.keras.optimizers 3. Errors: Error(usage) for a rule that the
  /// framework lacks.
  static EmbeddingOptimizer torch(Rule);
  static EmbeddingOptimizer fbgemm(Rule, bool row_wise = false);
  static EmbeddingOptimizer keras(Rule);
};

/// The initial values of a row: uniform on [-value, value), normal with standard deviation `value`, constant `value`,
/// or uniform on +-1 / sqrt(rows) for a table with row numbers. The values depend only on the seed, the table's name
/// and the key.
struct EmbeddingStart {
  enum class Kind { uniform, normal, constant, by_rows };
  Kind kind = Kind::uniform;
  float value = 0.05f;
};

/// Which ranks of a group own a table's rows. whole: one rank owns all rows. spread: rank = key modulo number of ranks.
/// replicated: each rank has all rows, and applies the gradients of all ranks. automatic: a table with row numbers is
/// whole if it fits into one rank's share of all bytes, a table with most_rows is whole, and other tables are spread.
/// Whole tables without a given rank are assigned by size, largest first, each to the rank with the fewest bytes so
/// far. A set without a group has all rows.
struct EmbeddingPlacement {
  enum class Where { automatic, whole, spread, replicated };
  Where where = Where::automatic;  ///< only tables with row numbers can be replicated
  int rank = -1;                   ///< owner rank of a whole table; -1: the rank with the fewest bytes
};

struct EmbeddingTableOptions {
  enum class WhenFull { error, evict_lru, evict_lfu, ignore };
  enum class Format { f32, f16, bf16 };  ///< stochastic rounding to f16 and bf16 keeps small updates
  std::string name;                      ///< the table's random numbers depend on the name, too
  int64_t dim = 0;                       ///< elements per row
  /// keys are row numbers 0 to rows - 1; 0: hashed keys, and a new key adds a row
  int64_t rows = 0;
  Format format = Format::f32;
  EmbeddingOptimizer optimizer{};
  EmbeddingStart initial{};
  EmbeddingPlacement placement{};
  // The fields below require hashed keys (rows = 0).

  /// Maximum number of rows; 0: limited by memory only. If the table is spread, its ranks share this number.
  int64_t most_rows = 0;
  WhenFull when_full = WhenFull::error;
  int64_t min_count = 1;         ///< a key gets a row when it has occurred this many times
  double admit_probability = 1;  ///< probability that a new key gets a row; each bag that contains the key draws once
  int64_t expire_after = 0;      ///< removes rows whose key did not occur in this many batches; 0: never
  bool marks_changes = false;    ///< required by export_changed_rows()
};

/// One bag of keys per sample, looked up in one table. Several features may share a table.
struct EmbeddingFeature {
  std::string name, table;
  Pooling pooling = Pooling::sum;
  bool weighted = false;  ///< keys have weights; not with Pooling::max and Pooling::none
};

/// A caller's allocator of device memory. It is used for batches, for look-ups, and for the rows of tables with row
/// numbers, because the size of these tables is fixed. The driver allocates the rows of other tables, because these
/// tables grow at fixed virtual addresses. The driver also allocates rows that may move to host memory or disk.
struct EmbeddingAllocator {
  /// Returns memory aligned to 256 bytes for work on `stream`; null if out of memory.
  void* (*allocate)(size_t bytes, void* stream, void* user) = nullptr;  ///< null: the driver allocates all memory
  void (*free)(void* memory, size_t bytes, void* stream, void* user) = nullptr;
  void* user = nullptr;
};

struct EmbeddingOptions {
  std::vector<EmbeddingTableOptions> tables;
  std::vector<EmbeddingFeature> features;  ///< calls pass their arrays in this order
  int gpu = -1;                            ///< index of the GPU; -1: the CPU
  void* stream = nullptr;                  ///< the caller's cudaStream_t; null: the default stream
  int threads = 1;                         ///< number of CPU threads
  uint64_t seed = 0;
  int batches = 2;  ///< maximum number of batches between forward() and update()
  /// Maximum keys of a table in a batch. Address space is reserved for this number of keys; memory is allocated as
  /// needed, or in advance if rows may be on disk.
  int64_t most_keys = 1 << 24;
  /// Memory for rows, like "table_memory" of a config. Rows use up to device_bytes of GPU memory (default: the free GPU
  /// memory), then up to host_bytes of host memory, then files in the folder `disk`.
  std::optional<int64_t> device_bytes{};
  int64_t host_bytes = 0;
  std::filesystem::path disk{};
  int64_t disk_bytes = 0;
  /// The rank of this set, if several sets share the tables. All ranks make sets with the same tables, features, seed
  /// and number of batches. Device, stream and memory may differ.
  EmbeddingRank rank{};
  /// Only threads that call the set call the allocator. The allocator must outlive the set.
  EmbeddingAllocator allocator{};
};

}  // namespace hctr
