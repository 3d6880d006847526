#include "optim/optimizer_section.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hctr {
namespace {

using Rule = ops::Optimizer::Kind;
using Fields = Schema<HyperParameters>;

/// How a config spells a rule: the one list of them. `legacy_rate`: how version 2.1 called its rate.
struct RuleWords {
  Rule kind;
  std::string type, object;
  HyperParameters OptimizerSection::*hyper;
  std::string formula;
  void (*constants)(Fields&);
  std::string legacy_rate;
};

const Range kShare{.low = 0, .high = 1, .high_open = true};  // what is kept of a moment

void moments(Fields& fields) {
  fields.need("beta1", &HyperParameters::beta1, "decay of the first moment", kShare)
      .need("beta2", &HyperParameters::beta2, "decay of the second moment", kShare)
      .need("epsilon", &HyperParameters::epsilon, "added to the root of the second moment", more_than(0));
}

void momentum(Fields& fields) {
  fields.need("momentum_factor", &HyperParameters::momentum_factor, "mu, what is kept of the momentum", kShare);
}

const std::vector<RuleWords>& rules() {
  using H = HyperParameters;
  using O = OptimizerSection;
  static const std::vector<RuleWords> all = {
      {Rule::adam, "Adam", "adam_hparam", &O::adam,
       "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / "
       "(sqrt(v) + epsilon)",
       moments, "alpha"},
      {Rule::adamw, "AdamW", "adamw_hparam", &O::adamw, "Adam, and w -= lr weight_decay w of the w before the step",
       [](Fields& fields) {
         moments(fields);
         fields.need(
             "weight_decay", &H::weight_decay,
             "how fast weights decay: dense ones in each step, biases too, and the table rows that update_type says",
             at_least(0));
       },
       ""},
      {Rule::sgd, "SGD", "sgd_hparam", &O::sgd, "w -= lr g",
       [](Fields& fields) {
         fields.opt("atomic_update", &H::atomic_update, "accepted; sums are always made in a fixed order");
       },
       ""},
      {Rule::momentum_sgd, "MomentumSGD", "momentum_sgd_hparam", &O::momentum_sgd, "m = mu m - lr g; w += m", momentum,
       ""},
      {Rule::nesterov, "Nesterov", "nesterov_hparam", &O::nesterov, "a' = mu a - lr g; w += -mu a + (1 + mu) a'",
       momentum, ""},
      {Rule::adagrad, "AdaGrad", "adagrad_hparam", &O::adagrad, "s += g^2; w -= lr g / (sqrt(s) + epsilon)",
       [](Fields& fields) {
         fields.opt("initial_accu_value", &H::initial_accu_value, "what s starts at", at_least(0))
             .opt("epsilon", &H::epsilon, "added to the root of s", more_than(0))
             .opt("row_wise", &H::row_wise,
                  "one s for each row of an embedding, s += mean of g^2 over the row; dense weights keep one each all "
                  "the same");
       },
       ""},
      {Rule::rmsprop, "RMSProp", "rmsprop_hparam", &O::rmsprop,
       "v = beta v + (1 - beta) g^2; w -= lr g / (sqrt(v) + epsilon)",
       [](Fields& fields) {
         fields.opt("beta", &H::smoothing, "decay of v", kShare)
             .opt("epsilon", &H::epsilon, "added to the root of v", more_than(0));
       },
       ""},
      {Rule::ftrl, "Ftrl", "ftrl_hparam", &O::ftrl,
       "FTRL-Proximal with the rate lr / (beta + sqrt(n)), n += g^2, for each weight; weights start where they are "
       "drawn or loaded",
       [](Fields& fields) {
         fields.opt("beta", &H::beta, "added to the root of n", at_least(0))
             .opt("lambda1", &H::lambda1, "L1: holds weights at 0 until their gradients add up to more", at_least(0))
             .opt("lambda2", &H::lambda2, "L2: keeps weights small", at_least(0));
       },
       ""}};
  return all;
}

const RuleWords& words_of(Rule kind) {
  return *std::find_if(rules().begin(), rules().end(), [&](const RuleWords& words) { return words.kind == kind; });
}

/// The object of a rule: the rate and its schedule, which every rule has, and the rule's constants.
Fields fields_of(const RuleWords& words) {
  using H = HyperParameters;
  Fields fields(words.object);
  fields.need("learning_rate", &H::learning_rate, "step size, lr", at_least(0));
  if (!words.legacy_rate.empty()) fields.alias(words.legacy_rate);
  fields.opt("warmup_steps", &H::warmup_steps, "steps over which the rate rises from 0", at_least(1))
      .opt("decay_start", &H::decay_start, "step at which decay starts; 0: no decay", at_least(0))
      .opt("decay_steps", &H::decay_steps, "steps the decay takes", at_least(1))
      .opt("decay_power", &H::decay_power, "power of the polynomial decay", at_least(1))
      .opt("end_lr", &H::end_lr, "rate after the decay", at_least(0))
      .together([](H& p, const std::string&, Problems&) { p.given = true; });
  words.constants(fields);
  return fields;
}

std::string type_words() {
  std::vector<std::string> types;
  for (const RuleWords& words : rules()) types.push_back(words.type);
  return one_of(types);
}

}  // namespace

const std::vector<std::pair<std::string, UpdateType>>& EnumWords<UpdateType>::table() {
  static const std::vector<std::pair<std::string, UpdateType>> words = {
      {"Local", UpdateType::local}, {"Global", UpdateType::global}, {"LazyGlobal", UpdateType::lazy_global}};
  return words;
}

const std::vector<std::pair<std::string, Rule>>& EnumWords<Rule>::table() {
  static const std::vector<std::pair<std::string, Rule>> words = [] {
    std::vector<std::pair<std::string, Rule>> of_rules;
    for (const RuleWords& rule : rules()) of_rules.emplace_back(rule.type, rule.kind);
    return of_rules;
  }();
  return words;
}

const HyperParameters& OptimizerSection::hyper() const { return this->*words_of(type).hyper; }

UpdateType OptimizerSection::update() const {
  if (update_type) return *update_type;
  return global_update.value_or(false) ? UpdateType::global : UpdateType::local;
}

ops::Optimizer OptimizerSection::rule(double step_rate) const {
  const HyperParameters& h = hyper();
  ops::Optimizer rule;
  rule.kind = type;
  rule.beta1 = static_cast<float>(h.beta1);
  rule.beta2 = static_cast<float>(type == Rule::rmsprop ? h.smoothing : h.beta2);
  rule.epsilon = static_cast<float>(h.epsilon);
  rule.momentum = static_cast<float>(h.momentum_factor);
  rule.initial = static_cast<float>(h.initial_accu_value);
  rule.row_wise = h.row_wise;
  rule.beta = static_cast<float>(h.beta);
  rule.lambda1 = static_cast<float>(h.lambda1);
  rule.lambda2 = static_cast<float>(h.lambda2);
  rule.weight_decay = static_cast<float>(h.weight_decay);
  rule.rate_factor = step_rate > 0 ? static_cast<float>(h.learning_rate / step_rate) : 1.0f;
  return rule;
}

Schema<OptimizerSection> optimizer_schema() {
  using O = OptimizerSection;
  Schema<O> schema("optimizer");
  schema.need("type", &O::type, "the update rule: " + type_words())
      .opt("update_type", &O::update_type,
           "which embedding rows a step changes: Local those of the batch (AdamW decays no others), Global all, as if "
           "absent ones had "
           "gradient 0, LazyGlobal those of the batch, catching up on what they missed (Adam); left out: Local")
      .opt("global_update", &O::global_update, "older spelling: true is Global, false is Local");
  for (const RuleWords& words : rules())
    schema
        .part(words.object, words.hyper, fields_of(words), cat("constants of ", words.type, ": ", words.formula), false)
        .unused_when(
            [&words](const O& o) { return o.type == words.kind ? "" : "the type is " + words_of(o.type).type; });
  return schema.ignored("learning_rate", "the rate stands in the *_hparam object")
      .together([](O& o, const std::string& pointer, Problems& problems) {
        const RuleWords& words = words_of(o.type);
        if (!o.hyper().given)
          problems.error(pointer, cat("an optimizer of type ", words.type, " needs the object \"", words.object, "\""));
        if (o.update() == UpdateType::lazy_global && o.type != Rule::adam)
          problems.error(pointer + "/update_type",
                         "LazyGlobal exists for Adam only; Local and Global work with every type");
      });
}

double scheduled_rate(const HyperParameters& h, int64_t n) {
  const double base = h.learning_rate;
  if (n <= h.warmup_steps) return base * static_cast<double>(n) / static_cast<double>(h.warmup_steps);
  if (h.decay_start == 0 || n <= h.decay_start) return base;
  const int64_t left = h.decay_start + h.decay_steps - n;
  if (left < 0) return h.end_lr;
  return std::max(h.end_lr,
                  base * std::pow(static_cast<double>(left) / static_cast<double>(h.decay_steps), h.decay_power));
}

}  // namespace hctr
