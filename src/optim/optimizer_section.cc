#include "optim/optimizer_section.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "optim/catalog.h"

namespace hctr {

template <>
const Words<UpdateType>& EnumWords<UpdateType>::table() {
  static const Words<UpdateType> words = {
      {"Local", UpdateType::local}, {"Global", UpdateType::global}, {"LazyGlobal", UpdateType::lazy_global}};
  return words;
}

UpdateType OptimizerSection::update() const {
  if (update_type) return *update_type;
  return global_update.value_or(false) ? UpdateType::global : UpdateType::local;
}

ops::Optimizer OptimizerSection::rule(double step_rate) const {
  ops::Optimizer rule = hyper;
  rule.kind = type;
  rule.rate_factor = step_rate > 0 ? static_cast<float>(hyper.learning_rate / step_rate) : 1.0f;
  return rule;
}

Schema<OptimizerSection> optimizer_schema() {
  using O = OptimizerSection;
  std::vector<std::string> names;
  for (const OptimizerType& type : optimizer_catalog()) names.push_back(type.name);
  Schema<O> schema("optimizer");
  schema.need("type", &O::type, "the update rule: " + one_of(names))
      .opt("update_type", &O::update_type,
           "which embedding rows a step changes: Local those of the batch (AdamW decays no others), Global all, as if "
           "absent ones had "
           "gradient 0, LazyGlobal those of the batch, catching up on what they missed (Adam); left out: Local")
      .opt("global_update", &O::global_update, "older spelling: true is Global, false is Local");
  for (const OptimizerType& type : optimizer_catalog())
    schema.part(type.object, &O::hyper, type.schema(), cat("constants of ", type.name, ": ", type.formula), false)
        .unused_when(
            [&type](const O& o) { return o.type == type.kind ? "" : "the type is " + optimizer_type(o.type).name; });
  return schema.ignored("learning_rate", "the rate stands in the *_hparam object")
      .together([](O& o, const std::string& pointer, Problems& problems) {
        const OptimizerType& type = optimizer_type(o.type);
        if (!o.hyper.given)
          problems.error(pointer, cat("an optimizer of type ", type.name, " needs the object \"", type.object, "\""));
        if (o.update() == UpdateType::lazy_global && o.type != ops::Optimizer::Kind::adam)
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
