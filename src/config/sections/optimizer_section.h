// The optimizer section of a config: the same at the top level and inside an embedding.
#pragma once

#include <cstdint>
#include <optional>

#include "config/schema.h"
#include "ops/optimizer/optimizer_rules.h"
#include "ops/optimizer/update_type.h"

namespace hctr {

template <>
const Words<UpdateType>& EnumWords<UpdateType>::table();
template <>
const Words<ops::Optimizer::Kind>& EnumWords<ops::Optimizer::Kind>::table();

/// A number of steps, or a share of the steps of a run.
struct StepCount {
  StepCount(int64_t count = 0) : steps(count) {}

  int64_t steps = 0;            ///< when there is no share
  std::optional<double> share;  ///< more than 0, 1 at the most

  /// Replaces the share by the nearest number of steps, at least 1.
  void resolve(int64_t steps_of_run);
};
/// A number between 0 and 1, or text as "10%", is a share. `range`: of numbers of steps.
Misfit read_value(const Json& value, const Range& range, StepCount& out);
Json to_json(const StepCount&);
template <>
struct TypeWord<StepCount> {
  static std::string text() { return "integer or share"; }
};

/// How the rate falls from decay_start on.
enum class Decay { polynomial, linear, cosine, step, constant };
template <>
const Words<Decay>& EnumWords<Decay>::table();

/// The *_hparam object: constants of the rule and the schedule of its rate. Its `kind` and `rate_factor` are not read;
/// OptimizerSection::rule() fills them.
struct HyperParameters : ops::Optimizer {
  bool given = false;
  double learning_rate = 0;
  StepCount warmup_steps = 1, decay_start = 0;
  std::optional<StepCount> decay_steps;
  std::optional<Decay> decay;
  double decay_power = 2, decay_factor = 0.5, end_lr = 0;
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

/// Replaces shares of the run in the schedule by steps. If "decay" names a kind, it begins after the warm-up and ends
/// with the run unless decay_start and decay_steps override that. Otherwise decay_start defaults to 0, which means
/// none, and decay_steps to 1, as in HugeCTR.
void resolve_schedule(HyperParameters&, int64_t steps_of_run);

/// Whether resolve_schedule() needs to know how many steps the run has.
bool depends_on_length(const HyperParameters&);

/// The rate of training step n = 1, 2, ... of a schedule that has been resolved: linear warm-up, constant, decay.
///   n <= warmup_steps           : base n / warmup_steps
///   decay_start = 0 or n <= it  : base
///   later, with m = n - decay_start and d = decay_steps
///     polynomial                : max(end_lr, base ((d - m) / d)^decay_power) while m <= d, then end_lr
///     linear                    : the same with the power 1
///     cosine                    : end_lr + (base - end_lr) (1 + cos(pi m / d)) / 2 while m <= d, then end_lr
///     step                      : max(end_lr, base decay_factor^ceil(m / d))
double scheduled_rate(const HyperParameters&, int64_t n);

}  // namespace hctr
