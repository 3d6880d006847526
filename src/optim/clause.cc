#include "optim/clause.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hctr {
namespace {

/// The fields every rule has. `legacy_name`: how version 2.1 called the rate.
Schema<HyperParameters> rated(std::string title, const std::string& legacy_name = "") {
  Schema<HyperParameters> schema(std::move(title));
  schema.need("learning_rate", &HyperParameters::learning_rate, "step size", at_least(0));
  if (!legacy_name.empty()) schema.alias(legacy_name);
  return schema.opt("warmup_steps", &HyperParameters::warmup_steps, "steps over which the rate rises from 0", at_least(1))
      .opt("decay_start", &HyperParameters::decay_start, "step at which decay starts; 0: no decay", at_least(0))
      .opt("decay_steps", &HyperParameters::decay_steps, "steps the decay takes", at_least(1))
      .opt("decay_power", &HyperParameters::decay_power, "power of the polynomial decay", at_least(1))
      .opt("end_lr", &HyperParameters::end_lr, "rate after the decay", at_least(0))
      .together([](HyperParameters& p, const std::string&, Problems&) { p.given = true; });
}

}  // namespace

const std::vector<std::pair<std::string, UpdateType>>& EnumWords<UpdateType>::table() {
  static const std::vector<std::pair<std::string, UpdateType>> words = {
      {"Local", UpdateType::local}, {"Global", UpdateType::global}, {"LazyGlobal", UpdateType::lazy_global}};
  return words;
}

const std::vector<std::pair<std::string, ops::Optimizer::Kind>>& EnumWords<ops::Optimizer::Kind>::table() {
  static const std::vector<std::pair<std::string, ops::Optimizer::Kind>> words = {{"Adam", ops::Optimizer::Kind::adam},
                                                                                 {"SGD", ops::Optimizer::Kind::sgd}};
  return words;
}

UpdateType OptimizerClause::update() const {
  if (update_type) return *update_type;
  return global_update.value_or(false) ? UpdateType::global : UpdateType::local;
}

ops::Optimizer OptimizerClause::rule(double step_rate) const {
  const HyperParameters& h = hyper();
  ops::Optimizer rule;
  rule.kind = type;
  rule.beta1 = static_cast<float>(h.beta1);
  rule.beta2 = static_cast<float>(h.beta2);
  rule.epsilon = static_cast<float>(h.epsilon);
  rule.rate_factor = step_rate > 0 ? static_cast<float>(h.learning_rate / step_rate) : 1.0f;
  return rule;
}

Schema<OptimizerClause> optimizer_schema() {
  using O = OptimizerClause;
  Schema<HyperParameters> adam = rated("adam_hparam", "alpha")
                                     .need("beta1", &HyperParameters::beta1, "decay of the first moment", {.low = 0, .high = 1, .high_open = true})
                                     .need("beta2", &HyperParameters::beta2, "decay of the second moment", {.low = 0, .high = 1, .high_open = true})
                                     .need("epsilon", &HyperParameters::epsilon, "added to the root of the second moment", more_than(0));
  Schema<HyperParameters> sgd = rated("sgd_hparam").opt("atomic_update", &HyperParameters::atomic_update,
                                                        "accepted; sums are always made in a fixed order");
  return Schema<O>("optimizer")
      .need("type", &O::type, "the update rule")
      .opt("update_type", &O::update_type, "which embedding rows a step changes")
      .opt("global_update", &O::global_update, "older spelling: true is Global, false is Local")
      .part("adam_hparam", &O::adam, std::move(adam), "constants of Adam", false)
      .part("sgd_hparam", &O::sgd, std::move(sgd), "constants of SGD", false)
      .ignored("learning_rate", "the rate stands in the *_hparam object")
      .together([](O& o, const std::string& pointer, Problems& problems) {
        if (!o.hyper().given) {
          const bool adam_type = o.type == ops::Optimizer::Kind::adam;
          problems.error(pointer, cat("an optimizer of type ", adam_type ? "Adam" : "SGD", " needs the object \"",
                                      adam_type ? "adam_hparam" : "sgd_hparam", "\""));
        }
        if (o.update() == UpdateType::lazy_global && o.type != ops::Optimizer::Kind::adam)
          problems.error(pointer + "/update_type", "LazyGlobal exists for Adam only; Local and Global work with every type");
      });
}

double scheduled_rate(const HyperParameters& h, int64_t n) {
  const double base = h.learning_rate;
  if (n <= h.warmup_steps) return base * static_cast<double>(n) / static_cast<double>(h.warmup_steps);
  if (h.decay_start == 0 || n <= h.decay_start) return base;
  const int64_t left = h.decay_start + h.decay_steps - n;
  if (left < 0) return h.end_lr;
  return std::max(h.end_lr, base * std::pow(static_cast<double>(left) / static_cast<double>(h.decay_steps), h.decay_power));
}

}  // namespace hctr
