#include "config/sections/optimizer_section.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "config/sections/optimizer_catalog.h"
#include "core/base/expect.h"

namespace hctr {

template <>
const Words<UpdateType>& EnumWords<UpdateType>::table() {
  static const Words<UpdateType> words = {
      {"Local", UpdateType::local}, {"Global", UpdateType::global}, {"LazyGlobal", UpdateType::lazy_global}};
  return words;
}

template <>
const Words<Decay>& EnumWords<Decay>::table() {
  static const Words<Decay> words = {{"polynomial", Decay::polynomial},
                                     {"linear", Decay::linear},
                                     {"cosine", Decay::cosine},
                                     {"step", Decay::step},
                                     {"constant", Decay::constant}};
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
           "which embedding rows a step updates. Local: rows of the batch (AdamW decays only these rows); Global: "
           "all rows, with gradient 0 for rows outside of the batch; LazyGlobal: rows of the batch, after applying "
           "the steps that they missed (Adam only); default: Local")
      .opt("global_update", &O::global_update, "older spelling: true is Global, false is Local");
  for (const OptimizerType& type : optimizer_catalog())
    schema.part(type.object, &O::hyper, type.schema(), cat("constants of ", type.name, ": ", type.formula), false)
        .unused_when(
            [&type](const O& o) { return o.type == type.kind ? "" : "the type is " + optimizer_type(o.type).name; });
  return schema.ignored("learning_rate", "set the rate in the *_hparam object")
      .together([](O& o, const std::string& pointer, Problems& problems) {
        const OptimizerType& type = optimizer_type(o.type);
        if (!o.hyper.given)
          problems.error(pointer, cat("an optimizer of type ", type.name, " needs the object \"", type.object, "\""));
        if (o.update() == UpdateType::lazy_global && o.type != ops::Optimizer::Kind::adam)
          problems.error(pointer + "/update_type",
                         "LazyGlobal exists for Adam only; Local and Global work with every type");
      });
}

void StepCount::resolve(int64_t steps_of_run) {
  if (!share) return;
  steps = std::max<int64_t>(1, std::llround(*share * static_cast<double>(steps_of_run)));
  share.reset();
}

Misfit read_value(const Json& value, const Range& range, StepCount& out) {
  const Json& v = unwrapped(value);
  if (v.is_number() && v.number() > 0 && v.number() < 1) {
    out.share = v.number();
    return {};
  }
  if (const std::string* text = v.string(); text && text->ends_with('%')) {
    double percent = 0;
    const char* const end = text->data() + text->size() - 1;
    const auto [stop, error] = std::from_chars(text->data(), end, percent);
    if (error == std::errc() && stop == end && percent > 0 && percent <= 100) {
      out.share = percent / 100;
      return {};
    }
  }
  const std::string expected = read_value(v, range, out.steps);
  if (expected.empty()) return {};
  return cat(expected, ", or a fraction of the run: a number between 0 and 1, or \"1%\" to \"100%\"");
}

Json to_json(const StepCount& count) {
  if (!count.share) return count.steps;
  // 100 % is written as a text, because the number 1 would mean one step
  return *count.share < 1 ? Json(*count.share) : Json("100%");
}

bool depends_on_length(const HyperParameters& h) {
  const bool decays = h.decay && *h.decay != Decay::constant;
  return h.warmup_steps.share || h.decay_start.share || (h.decay_steps ? h.decay_steps->share.has_value() : decays);
}

void resolve_schedule(HyperParameters& h, int64_t steps_of_run) {
  h.warmup_steps.resolve(steps_of_run);
  h.decay_start.resolve(steps_of_run);
  if (h.decay_steps) h.decay_steps->resolve(steps_of_run);
  if (!h.decay || *h.decay == Decay::constant) return;
  if (h.decay_start.steps == 0) h.decay_start.steps = h.warmup_steps.steps;
  if (!h.decay_steps) h.decay_steps = StepCount(std::max<int64_t>(1, steps_of_run - h.decay_start.steps));
}

double scheduled_rate(const HyperParameters& h, int64_t n) {
  HCTR_EXPECT(!h.warmup_steps.share && !h.decay_start.share && !h.decay_steps.value_or(1).share,
              "a fraction of the run needs the number of steps");
  const int64_t warmup = h.warmup_steps.steps, start = h.decay_start.steps, steps = h.decay_steps.value_or(1).steps;
  const Decay decay = h.decay.value_or(Decay::polynomial);
  const double base = h.learning_rate;
  if (n <= warmup) return base * static_cast<double>(n) / static_cast<double>(warmup);
  if (start == 0 || n <= start || decay == Decay::constant) return base;
  if (decay == Decay::step)
    return std::max(h.end_lr, base * std::pow(h.decay_factor, static_cast<double>((n - start + steps - 1) / steps)));
  const int64_t left = start + steps - n;
  if (left < 0) return h.end_lr;
  const double share = static_cast<double>(left) / static_cast<double>(steps);
  if (decay == Decay::cosine) return h.end_lr + (base - h.end_lr) * (1 - std::cos(std::numbers::pi * share)) / 2;
  return std::max(h.end_lr, base * (decay == Decay::linear ? share : std::pow(share, h.decay_power)));
}

}  // namespace hctr
