// The solver section: training length, devices, evaluation, snapshots and precision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/compatibility.h"
#include "config/schema.h"
#include "config/sections/checkpoint_section.h"
#include "config/sections/early_stopping_section.h"
#include "config/sections/embedding_section.h"
#include "config/sections/metric_words.h"
#include "config/sections/model_format.h"
#include "config/sections/precision.h"
#include "config/sections/pretrained.h"
#include "config/sections/stream_section.h"
#include "config/sections/table_memory.h"

namespace hctr {

enum class LrPolicy { fixed };
template <>
struct EnumWords<LrPolicy> {
  static const std::vector<std::pair<std::string, LrPolicy>>& table();
};

/// The reaction to a step whose loss or gradients are NaN or infinite.
enum class OnNan { stop, skip };
template <>
struct EnumWords<OnNan> {
  static const std::vector<std::pair<std::string, OnNan>>& table();
};

enum class KeyType { i32, i64 };
template <>
struct EnumWords<KeyType> {
  static const std::vector<std::pair<std::string, KeyType>>& table();
};

/// How a GPU computes fp32 GEMMs.
enum class Fp32Products { fp32, tf32, tf32x3 };
template <>
struct EnumWords<Fp32Products> {
  static const std::vector<std::pair<std::string, Fp32Products>>& table();
};

/// GPU indices, one list per process. With `all`, a single process on a machine uses every GPU, and several processes
/// use one GPU each.
struct GpuLists {
  std::vector<std::vector<int64_t>> per_process = {{0}};
  bool all = false;  ///< true: `per_process` is not used, and is empty
  int64_t count() const;
};
std::string read_value(const Json& value, const Range&, GpuLists& out);
Json to_json(const GpuLists&);
template <>
struct TypeWord<GpuLists> {
  static std::string text() { return "array of integer, an array of such arrays, or \"all\""; }
};

/// A seed of 64 arbitrary bits.
struct Seed {
  uint64_t value = 0;
};
std::string read_value(const Json& value, const Range&, Seed& out);
inline Json to_json(Seed seed) {
  return static_cast<int64_t>(seed.value);
}  // 2^63 and above are written as negative numbers; reading restores them
template <>
struct TypeWord<Seed> {
  static std::string text() { return "integer"; }
};

struct SolverSection {
  LrPolicy lr_policy = LrPolicy::fixed;
  int64_t display = 200;
  bool tensorboard = false;
  std::optional<int64_t> max_iter, num_epochs;
  int64_t snapshot = 0, snapshot_delta = 0;
  std::string snapshot_prefix;  // empty: models are saved in the run folder
  bool replace_models = false;  // allows overwriting models of other runs
  bool final_snapshot = true;
  bool snapshot_opt_states = false;
  ModelFormat model_format = ModelFormat::v2;
  PublishSection publish;
  CheckpointSection checkpoint;
  int64_t batchsize = 0;
  std::optional<int64_t> batchsize_eval;
  GpuLists gpu;
  std::string dense_model_file;
  std::vector<std::string> sparse_model_file;
  std::string dense_opt_states_file;
  std::vector<std::string> sparse_opt_states_file;
  std::vector<std::string> load_layers;  // layers that are loaded from the dense file; empty: all
  std::vector<std::string> frozen;       // names of layers and tables that are not updated
  bool combine_models = false;
  std::vector<Pretrained> pretrained;
  int64_t eval_interval = 0;
  std::optional<int64_t> max_eval_batches, max_eval_samples;
  MetricList eval_metrics;
  GroupBy group_by;
  EarlyStopping early_stopping;
  std::string export_predictions_prefix;
  std::optional<KeyType> input_key_type;
  Seed seed;
  bool cuda_graph = true;
  Precision mixed_precision;
  std::optional<int64_t> fp8_least_width;
  OnNan on_nan = OnNan::stop;
  std::optional<double> clip_gradient_norm, clip_gradient_value;
  std::optional<DType> exchange_precision;
  bool enable_tf32_compute = false;
  // After parsing, the value is tf32x3 or empty, because enable_tf32_compute distinguishes tf32 and fp32.
  std::optional<Fp32Products> fp32_products;
  std::optional<bool> algorithm_search;  // parsing makes this value true or empty
  std::optional<std::string> algorithm_file;
  Compatibility compatibility;
  /// Field spellings of other HugeCTR versions. Parsing moves the values to the fields above and clears these fields.
  std::optional<bool> i64_input_key, use_mixed_precision;
  std::optional<double> scaler, auc_threshold;
  std::optional<PlacementRule> placement;  // default for embeddings without "placement"
  std::string placement_file;
  TableMemory table_memory;

  /// The default dtype in which ranks exchange embedding vectors. An embedding may override it.
  DType exchange() const { return exchange_precision.value_or(mixed_precision.activations); }
  bool tf32x3() const { return fp32_products == Fp32Products::tf32x3; }
  int64_t eval_batch() const { return batchsize_eval.value_or(batchsize); }
  /// The metric that ranks evaluations, from "early_stopping" or "keep_best"; null if neither is set.
  const MetricType* best_metric() const { return early_stopping.given ? early_stopping.type() : checkpoint.best(); }
  /// Batches per evaluation; empty: the whole evaluation set.
  std::optional<int64_t> eval_batches() const;
};

Schema<SolverSection> solver_schema();

}  // namespace hctr
