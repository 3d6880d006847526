// The optimizer section of a config: the same at the top level and inside an embedding.
#pragma once

#include <cstdint>
#include <optional>

#include "config/schema.h"
#include "ops/optimizer_rules.h"

namespace hctr {

/// Which embedding rows a step changes.
enum class UpdateType {
  local,        ///< rows of the batch
  global,       ///< every row, as if absent ones had gradient 0
  lazy_global,  ///< rows of the batch, catching up on what global would have done to them (Adam)
};
template <>
const Words<UpdateType>& EnumWords<UpdateType>::table();
template <>
const Words<ops::Optimizer::Kind>& EnumWords<ops::Optimizer::Kind>::table();

/// The *_hparam object: constants of the rule and the schedule of its rate. Its `kind` and `rate_factor` are not read;
/// OptimizerSection::rule() fills them.
struct HyperParameters : ops::Optimizer {
  bool given = false;
  double learning_rate = 0;
  int64_t warmup_steps = 1, decay_start = 0, decay_steps = 1;
  double decay_power = 2, end_lr = 0;
  bool atomic_update = false;  ///< SGD: accepted without effect
};

struct OptimizerSection {
  ops::Optimizer::Kind type = ops::Optimizer::Kind::adam;
  std::optional<UpdateType> update_type;
  std::optional<bool> global_update;
  HyperParameters hyper;

  /// update_type, else global_update, else local.
  UpdateType update() const;
  /// The rule. `step_rate` is the base rate of the top-level section, which the step's rate is scheduled from.
  ops::Optimizer rule(double step_rate) const;
};

Schema<OptimizerSection> optimizer_schema();

/// The rate of training step n = 1, 2, ...: linear warm-up, constant, polynomial decay.
///   n <= warmup_steps                : base n / warmup_steps
///   decay_start = 0 or n <= it       : base
///   n <= decay_start + decay_steps   : max(end_lr, base ((decay_start + decay_steps - n) / decay_steps)^decay_power)
///   after                            : end_lr
double scheduled_rate(const HyperParameters&, int64_t n);

}  // namespace hctr
