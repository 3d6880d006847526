#include "capi/embedding_settings.h"

#include <string>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/embedding_handle.h"
#include "capi/rank_handle.h"
#include "core/base/expect.h"

namespace hctr::capi {
namespace {

/// Converts `value` to an enum with `count` values.
template <class Enum>
Enum enum_of(int32_t value, int32_t count, const std::string& what) {
  if (value < 0 || value >= count) throw Error(Kind::usage, cat(what, " is ", value, "; expected 0 to ", count - 1));
  return static_cast<Enum>(value);
}

EmbeddingOptimizer optimizer_of(const hctr_optimizer& from, const std::string& what) {
  EmbeddingOptimizer to;
  to.rule = enum_of<EmbeddingOptimizer::Rule>(from.rule, 11, what + ": rule");
  to.rows = enum_of<EmbeddingOptimizer::Rows>(from.rows, 3, what + ": rows");
  to.formula = enum_of<EmbeddingOptimizer::Formula>(from.formula, 3, what + ": formula");
  to.row_wise = from.row_wise != 0;
  to.beta1 = from.beta1;
  to.beta2 = from.beta2;
  to.epsilon = from.epsilon;
  to.momentum = from.momentum;
  to.smoothing = from.smoothing;
  to.initial = from.initial;
  to.beta = from.beta;
  to.lambda1 = from.lambda1;
  to.lambda2 = from.lambda2;
  to.weight_decay = from.weight_decay;
  to.most_gradient = from.most_gradient;
  return to;
}

EmbeddingTableOptions table_of(const hctr_table& from, size_t number) {
  EmbeddingTableOptions to;
  const std::string what = cat("table ", number);
  to.name = text_of(from.name, (what + ": its name").c_str());
  to.dim = from.dim;
  to.rows = from.rows;
  to.format = enum_of<EmbeddingTableOptions::Format>(from.format, 3, what + ": format");
  if (from.optimizer) to.optimizer = optimizer_of(read_struct(from.optimizer, "hctr_optimizer"), what + ": optimizer");
  to.initial.kind = enum_of<EmbeddingStart::Kind>(from.initial, 4, what + ": initial");
  if (from.initial != HCTR_UNIFORM || from.initial_value != 0) to.initial.value = from.initial_value;
  to.most_rows = from.most_rows;
  to.when_full = enum_of<EmbeddingTableOptions::WhenFull>(from.when_full, 4, what + ": when_full");
  if (from.min_count != 0) to.min_count = from.min_count;
  if (from.admit_probability != 0) to.admit_probability = from.admit_probability;
  to.expire_after = from.expire_after;
  to.marks_changes = from.marks_changes != 0;
  to.placement.where = enum_of<EmbeddingPlacement::Where>(from.placement, 4, what + ": placement");
  to.placement.rank = from.whole_on - 1;
  return to;
}

}  // namespace

EmbeddingOptions options_of(const hctr_embedding_options& from) {
  EmbeddingOptions to;
  for (size_t i = 0; i < from.table_count; ++i)
    to.tables.push_back(table_of(read_struct(from.tables, i, "hctr_table"), i));
  for (size_t i = 0; i < from.feature_count; ++i) {
    const hctr_feature feature = read_struct(from.features, i, "hctr_feature");
    const std::string what = cat("feature ", i);
    to.features.push_back({text_of(feature.name, (what + ": its name").c_str()),
                           text_of(feature.table, (what + ": its table").c_str()),
                           enum_of<Pooling>(feature.pooling, 5, what + ": pooling"), feature.weighted != 0});
  }
  to.gpu = from.gpu;
  to.stream = from.stream;
  if (from.threads != 0) to.threads = from.threads;
  to.seed = from.seed;
  if (from.batches != 0) to.batches = from.batches;
  if (from.most_keys != 0) to.most_keys = from.most_keys;
  if (from.device_bytes != 0) to.device_bytes = from.device_bytes;
  to.host_bytes = from.host_bytes;
  if (from.disk) to.disk = from.disk;
  to.disk_bytes = from.disk_bytes;
  if (from.rank) to.rank = from.rank->rank;
  to.allocator = {from.allocate, from.free, from.allocator_user};
  return to;
}

}  // namespace hctr::capi

hctr_status hctr_optimizer_defaults(int32_t rule, int32_t formula, hctr_optimizer* optimizer) {
  return hctr::capi::call([&] {
    using Optimizer = hctr::EmbeddingOptimizer;
    hctr::capi::expect_given(optimizer, "hctr_optimizer_defaults(): the optimizer");
    const auto kind = hctr::capi::enum_of<Optimizer::Rule>(rule, 11, "rule");
    const auto whose = hctr::capi::enum_of<Optimizer::Formula>(formula, 3, "formula");
    const Optimizer from = whose == Optimizer::Formula::torch   ? Optimizer::torch(kind)
                           : whose == Optimizer::Formula::keras ? Optimizer::keras(kind)
                                                                : Optimizer{.rule = kind};
    *optimizer = {sizeof *optimizer, rule,          static_cast<int32_t>(from.rows),
                  formula,           from.row_wise, from.beta1,
                  from.beta2,        from.epsilon,  from.momentum,
                  from.smoothing,    from.initial,  from.beta,
                  from.lambda1,      from.lambda2,  from.weight_decay,
                  from.most_gradient};
  });
}
