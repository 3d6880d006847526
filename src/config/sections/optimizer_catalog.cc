#include "config/sections/optimizer_catalog.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

using H = HyperParameters;
using Fields = Schema<HyperParameters>;
using Rule = ops::Optimizer::Kind;

const Range kFraction{.low = 0, .high = 1, .high_open = true};

void add_moments(Fields& fields) {
  fields.opt("beta1", &H::beta1, "decay of the first moment", kFraction)
      .opt("beta2", &H::beta2, "decay of the second moment", kFraction)
      .opt("epsilon", &H::epsilon, "added to the square root of the second moment", more_than(0));
}

void add_weight_decay(Fields& fields) {
  add_moments(fields);
  fields.opt("weight_decay", &H::weight_decay,
             "weight decay, applied in each step to all dense weights, including biases, and to the table rows that "
             "update_type selects",
             at_least(0));
}

void add_atomic_update(Fields& fields) {
  fields.opt("atomic_update", &H::atomic_update, "accepted without effect: sums always have a fixed order");
}

void add_momentum(Fields& fields) { fields.opt("momentum_factor", &H::momentum, "mu, the momentum factor", kFraction); }

void add_adagrad(Fields& fields) {
  fields.opt("initial_accu_value", &H::initial, "what s starts at", at_least(0))
      .opt("epsilon", &H::epsilon, "added to sqrt(s)", more_than(0))
      .opt("row_wise", &H::row_wise,
           "one s for each row of an embedding, s += mean of g^2 over the row; dense weights keep one s per element");
}

void add_rmsprop(Fields& fields) {
  fields.opt("beta", &H::smoothing, "decay of v", kFraction)
      .opt("epsilon", &H::epsilon, "added to sqrt(v)", more_than(0));
}

void add_ftrl(Fields& fields) {
  fields.opt("beta", &H::beta, "added to sqrt(n)", at_least(0))
      .opt("lambda1", &H::lambda1,
           "L1 penalty: a weight stays 0 until the absolute value of its gradient sum exceeds "
           "lambda1",
           at_least(0))
      .opt("lambda2", &H::lambda2, "L2 penalty: keeps weights small", at_least(0));
}

}  // namespace

const std::vector<OptimizerType>& optimizer_catalog() {
  static const std::vector<OptimizerType> all = {
      {Rule::adam, "Adam", "adam_hparam",
       "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / "
       "(sqrt(v) + epsilon)",
       add_moments, "alpha"},
      {Rule::adamw, "AdamW", "adamw_hparam", "Adam, and w -= lr * weight_decay * (w before the step)",
       add_weight_decay},
      {Rule::sgd, "SGD", "sgd_hparam", "w -= lr g", add_atomic_update},
      {Rule::momentum_sgd, "MomentumSGD", "momentum_sgd_hparam", "m = mu m - lr g; w += m", add_momentum},
      {Rule::nesterov, "Nesterov", "nesterov_hparam", "a' = mu a - lr g; w += -mu a + (1 + mu) a'", add_momentum},
      {Rule::adagrad, "AdaGrad", "adagrad_hparam", "s += g^2; w -= lr g / (sqrt(s) + epsilon)", add_adagrad},
      {Rule::rmsprop, "RMSProp", "rmsprop_hparam", "v = beta v + (1 - beta) g^2; w -= lr g / (sqrt(v) + epsilon)",
       add_rmsprop},
      {Rule::ftrl, "Ftrl", "ftrl_hparam",
       "FTRL-Proximal with the rate lr / (beta + sqrt(n)), n += g^2, for each weight; training starts from the "
       "random or loaded weights",
       add_ftrl}};
  return all;
}

const OptimizerType& optimizer_type(Rule kind) {
  const auto& all = optimizer_catalog();
  const auto found = std::find_if(all.begin(), all.end(), [&](const OptimizerType& type) { return type.kind == kind; });
  HCTR_EXPECT(found != all.end(), "rule ", static_cast<int>(kind),
              " has no row in config/sections/optimizer_catalog.cc");
  return *found;
}

Fields OptimizerType::schema() const {
  Fields fields(object);
  fields.need("learning_rate", &H::learning_rate, "step size, lr", at_least(0));
  if (!rate_alias.empty()) fields.alias(rate_alias);
  fields
      .opt("warmup_steps", &H::warmup_steps,
           "number of steps in which the rate rises from 0. warmup_steps, decay_start and decay_steps may be "
           "fractions of the run: 0.1, or \"10%\"",
           at_least(1))
      .opt("decay", &H::decay,
           "decay of the rate after the warm-up: \"polynomial\", \"linear\", \"cosine\", \"step\" or \"constant\". "
           "The decay begins after the warm-up and ends with the run, unless decay_start and decay_steps are set. "
           "Default: \"polynomial\" if decay_start is set, else no decay")
      .opt("decay_start", &H::decay_start,
           "step at which the decay starts. 0: the decay starts after the warm-up if the field decay is set; without "
           "this field the rate does not decay",
           at_least(0))
      .opt("decay_steps", &H::decay_steps,
           "number of steps of the decay; with decay \"step\", the interval between two decreases of the rate. Default "
           "with decay: all steps up to the end of the run; without decay: 1",
           at_least(1))
      .opt("decay_power", &H::decay_power, "power of the polynomial decay", at_least(1))
      .opt("decay_factor", &H::decay_factor,
           "with decay \"step\", the factor by which each decrease multiplies the rate", between(0, 1))
      .opt("end_lr", &H::end_lr, "learning rate after the decay", at_least(0))
      .together([](H& p, const std::string& pointer, Problems& problems) {
        p.given = true;
        if (p.decay == Decay::step && !p.decay_steps)
          problems.error(pointer + "/decay",
                         "\"step\" needs \"decay_steps\": the number of steps between two decreases of the rate");
      });
  add_constants(fields);
  return fields;
}

template <>
const Words<Rule>& EnumWords<Rule>::table() {
  static const Words<Rule> words = [] {
    Words<Rule> names;
    for (const OptimizerType& type : optimizer_catalog()) names.emplace_back(type.name, type.kind);
    return names;
  }();
  return words;
}

}  // namespace hctr
