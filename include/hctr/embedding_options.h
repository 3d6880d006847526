// What a set of embeddings is made with: tables, features, memory, ranks.
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

/// How the vectors v of a bag of keys with weights w become one: sum w v; sum w v / sum w; sum w v / sqrt(sum w^2); the
/// largest of each element; or not at all: each key has a vector of its own. Without weights w is 1. A key without a
/// row has the vector 0, and counts in the divisor. An empty bag gives 0, and so does a divisor of 0.
enum class Pooling { sum, mean, sqrtn, max, none };

/// An optimizer of rows. Its defaults are those of a config; docs/embedding_set.md has the formulas.
struct HCTR_API EmbeddingOptimizer {
  enum class Rule { none, sgd, momentum_sgd, nesterov, adagrad, rmsprop, ftrl, adam, adamw, adamax, adadelta };
  /// Which rows a step changes: those of the batch; every row, as if absent ones had gradient 0; or those of the batch,
  /// which catch up (adam).
  enum class Rows { local, global, lazy_global };
  /// Whose formula: of momentum_sgd and nesterov, whether the rate is inside the momentum; of adagrad and rmsprop,
  /// whether epsilon is inside the root; of adam, adamw and adamax, whether epsilon is corrected for the bias.
  enum class Formula { config, torch, keras };
  Rule rule = Rule::adam;
  Rows rows = Rows::local;
  Formula formula = Formula::config;
  float beta1 = 0.9f;                        ///< adam, adamw, adamax
  float beta2 = 0.999f;                      ///< adam, adamw, adamax
  float epsilon = 1e-7f;                     ///< adam, adamw, adamax, adagrad, rmsprop, adadelta
  float momentum = 0.9f;                     ///< momentum_sgd, nesterov
  float smoothing = 0.9f;                    ///< rmsprop, adadelta
  float initial = 0;                         ///< adagrad, ftrl: where sums of squares start
  bool row_wise = false;                     ///< adagrad: one sum for each row
  float beta = 1, lambda1 = 0, lambda2 = 0;  ///< ftrl
  float weight_decay = 0.01f;                ///< adamw
  float most_gradient = 0;                   ///< the magnitude that gradients are cut to; 0: they are not

  /// With the formula and the defaults of torch.optim (and of FBGEMM's adagrad, row-wise adagrad, adam), or of
  /// tf.keras.optimizers 3. Errors: Error(usage) for a rule that they do not have.
  static EmbeddingOptimizer torch(Rule);
  static EmbeddingOptimizer fbgemm(Rule, bool row_wise = false);
  static EmbeddingOptimizer keras(Rule);
};

/// The elements of a row before its first update: uniform on [-value, value), normal with that standard deviation, that
/// constant, or uniform on +-1 / sqrt(rows) of a table with row numbers. They depend on the seed, the table's name and
/// the key alone.
struct EmbeddingStart {
  enum class Kind { uniform, normal, constant, by_rows };
  Kind kind = Kind::uniform;
  float value = 0.05f;
};

/// Which rank of a group has the rows of a table: one has them all; each has those of the keys with its remainder by
/// the number of ranks; or each has them all, and applies the gradients of all. Automatic: tables with row numbers that
/// are no more than the share of a rank are whole, each on the rank with the fewest bytes so far, the largest table
/// first; so are those with most_rows; others are spread. A set without a group has all rows.
struct EmbeddingPlacement {
  enum class Where { automatic, whole, spread, replicated };
  Where where = Where::automatic;  ///< replicated: row numbers alone
  int rank = -1;                   ///< of a whole table; -1: chosen as above
};

struct EmbeddingTableOptions {
  enum class WhenFull { error, evict_lru, evict_lfu, ignore };
  enum class Format { f32, f16, bf16 };  ///< two-byte rows are rounded at random, so that small updates are not lost
  std::string name;                      ///< also names the stream of random numbers
  int64_t dim = 0;                       ///< elements of a row
  int64_t rows = 0;                      ///< row numbers 0 to rows - 1 are the keys; 0: any keys, each gets a row
  Format format = Format::f32;
  EmbeddingOptimizer optimizer{};
  EmbeddingStart initial{};
  EmbeddingPlacement placement{};
  // The following need hashed keys (rows = 0).
  int64_t most_rows = 0;  ///< 0: memory is the limit. Of a spread table each rank has its share of them
  WhenFull when_full = WhenFull::error;
  int64_t min_count = 1;         ///< occurrences after which a key gets a row
  double admit_probability = 1;  ///< that a key gets a row, for each bag with it
  int64_t expire_after = 0;      ///< rows whose key did not occur in so many batches are removed; 0: none
  bool marks_changes = false;    ///< for export_changed_rows()
};

/// A list of keys of each sample, looked up in one table. Several features may share a table.
struct EmbeddingFeature {
  std::string name, table;
  Pooling pooling = Pooling::sum;
  bool weighted = false;  ///< its keys have weights; not with max and none
};

/// Where a set takes memory of its device: that of batches and look-ups, and rows of tables with row numbers, which
/// have a size from the start. Rows of other tables grow at fixed addresses, which the driver alone can do, and so does
/// what goes on to memory of the host or a disk.
struct EmbeddingAllocator {
  /// Memory aligned to 256 bytes, which work on the stream may use; null where there is no more.
  void* (*allocate)(size_t bytes, void* stream, void* user) = nullptr;  ///< null: the driver gives all memory
  void (*free)(void* memory, size_t bytes, void* stream, void* user) = nullptr;
  void* user = nullptr;
};

struct EmbeddingOptions {
  std::vector<EmbeddingTableOptions> tables;
  std::vector<EmbeddingFeature> features;  ///< in the order of the arrays that calls take
  int gpu = -1;                            ///< -1: the CPU
  void* stream = nullptr;                  ///< cudaStream_t of the caller; null: the default stream
  int threads = 1;                         ///< of the CPU
  uint64_t seed = 0;
  int batches = 2;  ///< that may be between forward() and update() at a time
  /// Of a table in a batch. Addresses are reserved for them, and memory is taken as needed; with a disk, all of it.
  int64_t most_keys = 1 << 24;
  /// Memory for rows, as "table_memory" of a config has it: most on the GPU (nothing: what is free), most in memory of
  /// the host beyond that, and a folder for rows that neither has room for.
  std::optional<int64_t> device_bytes{};
  int64_t host_bytes = 0;
  std::filesystem::path disk{};
  int64_t disk_bytes = 0;
  /// The rank that this set is, where several share the tables. All ranks make sets of the same tables, features, seed
  /// and number of batches; each has its own device, stream and memory.
  EmbeddingRank rank{};
  /// Called by the thread that calls the set; outlives it.
  EmbeddingAllocator allocator{};
};

}  // namespace hctr
