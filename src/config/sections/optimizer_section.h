// The optimizer section of a config. Embeddings have the same section as the top level.
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

/// A number of steps: absolute, or as a fraction of the run's steps.
struct StepCount {
  StepCount(int64_t count = 0) : steps(count) {}

  int64_t steps = 0;            ///< used only if `share` is empty
  std::optional<double> share;  ///< a fraction in (0, 1]

  /// Replaces `share` by the nearest number of steps, at least 1.
  void resolve(int64_t steps_of_run);
};
/// Reads a number of steps, or a fraction: a number between 0 and 1, or a text such as "10%". `range`: the allowed
/// numbers of steps.
Misfit read_value(const Json& value, const Range& range, StepCount& out);
Json to_json(const StepCount&);
template <>
struct TypeWord<StepCount> {
  static std::string text() { return "integer or share"; }
};

/// The shape of the learning rate decay from decay_start on.
enum class Decay { polynomial, linear, cosine, step, constant };
template <>
const Words<Decay>& EnumWords<Decay>::table();

/// The *_hparam object: the constants of the update rule and the learning rate schedule. OptimizerSection::rule() sets
/// `kind` and `rate_factor`; they are not read from the config.
struct HyperParameters : ops::Optimizer {
  bool given = false;
  double learning_rate = 0;
  StepCount warmup_steps = 1, decay_start = 0;
  std::optional<StepCount> decay_steps;
  std::optional<Decay> decay;
  double decay_power = 2, decay_factor = 0.5, end_lr = 0;
  bool atomic_update = false;  ///< field of SGD; has no effect
};

struct OptimizerSection {
  ops::Optimizer::Kind type = ops::Optimizer::Kind::adam;
  std::optional<UpdateType> update_type;
  std::optional<bool> global_update;
  HyperParameters hyper;

  /// update_type if set, else global_update if set, else local.
  UpdateType update() const;
  /// The update rule. Its rate_factor is this section's learning rate divided by `step_rate`, the base learning rate of
  /// the top-level section; 1 if `step_rate` is 0.
  ops::Optimizer rule(double step_rate) const;
};

Schema<OptimizerSection> optimizer_schema();

/// Replaces fractions of the run by steps. If "decay" names a kind, the decay starts after the warm-up and ends with
/// the run; decay_start and decay_steps override this. Without "decay", the defaults are those of HugeCTR: decay_start
/// 0, meaning no decay, and decay_steps 1.
void resolve_schedule(HyperParameters&, int64_t steps_of_run);

/// Whether resolve_schedule() depends on the number of steps of the run.
bool depends_on_length(const HyperParameters&);

/// The learning rate of training step n = 1, 2, ...: linear warm-up, constant, decay. Call resolve_schedule() first.
///   n <= warmup_steps                     : base n / warmup_steps
///   decay_start = 0 or n <= decay_start   : base
///   then, with m = n - decay_start and d = decay_steps
///     polynomial                          : max(end_lr, base ((d - m) / d)^decay_power) while m <= d, then end_lr
///     linear                              : polynomial with power 1
///     cosine                              : end_lr + (base - end_lr) (1 + cos(pi m / d)) / 2 while m <= d, then end_lr
///     step                                : max(end_lr, base decay_factor^ceil(m / d))
double scheduled_rate(const HyperParameters&, int64_t n);

}  // namespace hctr
