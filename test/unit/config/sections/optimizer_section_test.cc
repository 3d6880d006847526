// The optimizer section: valid sections and error messages.
#include "config/sections/optimizer_section.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "config/sections/optimizer_catalog.h"
#include "core/base/expect.h"
#include "support/plain_optimizer.h"
#include "support/problems_text.h"

namespace hctr::test {
namespace {

struct Read {
  OptimizerSection section;
  Problems problems;

  std::string text() const { return problems_text(problems); }
};

Read read(const std::string& json) {
  Read r;
  r.section = optimizer_schema().parse(Json::parse(json, "c.json"), "/optimizer", r.problems);
  return r;
}

/// A valid section of each type: the name of its object, and its required constants.
struct Example {
  std::string type, object, constants;
  ops::Optimizer::Kind kind;
};
std::vector<Example> examples() {
  std::vector<Example> all;
  for (const OptimizerType& type : optimizer_catalog()) {
    std::string constants;
    const Schema<HyperParameters> schema = type.schema();
    for (const FieldDoc& field : schema.fields())
      if (field.required && field.name != "learning_rate") constants += cat(", \"", field.name, "\": 0.5");
    all.push_back({type.name, type.object, constants, type.kind});
  }
  return all;
}
std::string object_of(const Example& e, const std::string& more = "") {
  return cat("\"", e.object, "\": {\"learning_rate\": 0.25", e.constants, more, "}");
}
std::string section_of(const Example& e, const std::string& more = "") {
  return cat(R"({"type": ")", e.type, "\", ", object_of(e), more, "}");
}

TEST(OptimizerSection, TheCatalogHasEveryRuleOnce) {
  std::set<ops::Optimizer::Kind> kinds;
  for (const OptimizerType& type : optimizer_catalog()) {
    EXPECT_TRUE(kinds.insert(type.kind).second) << type.name;
    EXPECT_EQ(&optimizer_type(type.kind), &type);
  }
  for (const ops::Optimizer& optimizer : every_rule())
    EXPECT_TRUE(kinds.count(optimizer.kind)) << "a rule that test/support/plain_optimizer.h knows and no config names";
  for (const OptimizerType& type : optimizer_catalog()) {
    const auto rules = every_rule();
    EXPECT_TRUE(std::any_of(rules.begin(), rules.end(), [&](const auto& rule) { return rule.kind == type.kind; }))
        << type.name << " has no formula in test/support/plain_optimizer.h";
  }
}

TEST(OptimizerSection, EveryTypeHasItsObjectWithARateAndASchedule) {
  for (const Example& e : examples()) {
    SCOPED_TRACE(e.type);
    const std::string schedule =
        R"(, "warmup_steps": 3, "decay_start": 10, "decay_steps": 20, "decay_power": 1, "end_lr": 0.125)";
    const Read r = read(cat(R"({"type": ")", e.type, "\", ", object_of(e, schedule), "}"));
    EXPECT_EQ(r.text(), "");
    EXPECT_EQ(r.section.type, e.kind);
    EXPECT_EQ(r.section.update(), UpdateType::local);
    EXPECT_EQ(r.section.rule(0.25).kind, e.kind);
    const HyperParameters& h = r.section.hyper;
    EXPECT_EQ(scheduled_rate(h, 3), 0.25);
    EXPECT_EQ(scheduled_rate(h, 1), 0.25 / 3);
    EXPECT_EQ(scheduled_rate(h, 15), 0.1875);
    EXPECT_EQ(scheduled_rate(h, 1000), 0.125);
    EXPECT_EQ(read(cat(R"({"type": ")", e.type, "\"}")).text(),
              cat("error /optimizer: an optimizer of type ", e.type, " needs the object \"", e.object, "\"\n"));
  }
}

TEST(OptimizerSection, ConstantsReachTheRule) {
  const auto rule = [](const std::string& type, const std::string& object) {
    const Read r = read(cat(R"({"type": ")", type, "\", ", object, "}"));
    EXPECT_EQ(r.text(), "");
    return r.section.rule(0.5);
  };
  const ops::Optimizer adamw = rule(
      "AdamW",
      R"("adamw_hparam": {"learning_rate": 0.25, "beta1": 0.5, "beta2": 0.75, "epsilon": 0.125, "weight_decay": 2})");
  EXPECT_EQ(adamw.beta1, 0.5f);
  EXPECT_EQ(adamw.beta2, 0.75f);
  EXPECT_EQ(adamw.epsilon, 0.125f);
  EXPECT_EQ(adamw.weight_decay, 2);
  EXPECT_EQ(adamw.rate_factor, 0.5f);
  EXPECT_EQ(rule("MomentumSGD", R"("momentum_sgd_hparam": {"learning_rate": 1, "momentum_factor": 0.5})").momentum,
            0.5f);
  EXPECT_EQ(rule("Nesterov", R"("nesterov_hparam": {"learning_rate": 1, "momentum_factor": 0})").momentum, 0);
  const ops::Optimizer adagrad =
      rule("AdaGrad",
           R"("adagrad_hparam": {"learning_rate": 1, "initial_accu_value": 0.5, "epsilon": 0.25, "row_wise": true})");
  EXPECT_EQ(adagrad.start(0), 0.5f);
  EXPECT_EQ(adagrad.epsilon, 0.25f);
  EXPECT_TRUE(adagrad.row_wise);
  const ops::Optimizer plain = rule("AdaGrad", R"("adagrad_hparam": {"learning_rate": 1})");
  EXPECT_EQ(plain.start(0), 0);
  EXPECT_EQ(plain.epsilon, 1e-7f);
  EXPECT_FALSE(plain.row_wise);
  EXPECT_EQ(rule("RMSProp", R"("rmsprop_hparam": {"learning_rate": 1})").smoothing, 0.9f);
  EXPECT_EQ(rule("RMSProp", R"("rmsprop_hparam": {"learning_rate": 1, "beta": 0.5, "epsilon": 0.25})").smoothing, 0.5f);
  const ops::Optimizer ftrl =
      rule("Ftrl", R"("ftrl_hparam": {"learning_rate": 1, "beta": 0, "lambda1": 0.5, "lambda2": 0.25})");
  EXPECT_EQ(ftrl.beta, 0);
  EXPECT_EQ(ftrl.lambda1, 0.5f);
  EXPECT_EQ(ftrl.lambda2, 0.25f);
  EXPECT_EQ(rule("Ftrl", R"("ftrl_hparam": {"learning_rate": 1})").beta, 1);
}

TEST(OptimizerSection, OnlyTheRateIsRequired) {
  for (const Example& e : examples()) {
    const Read r = read(cat(R"({"type": ")", e.type, "\", \"", e.object, "\": {}}"));
    ASSERT_EQ(r.problems.errors().size(), 1u);
    EXPECT_EQ(r.problems.errors().at(0).message, cat(e.object, " needs \"learning_rate\": step size, lr"));
    EXPECT_TRUE(e.constants.empty());
  }
  const HyperParameters adam = read(R"({"type": "Adam", "adam_hparam": {"learning_rate": 1}})").section.hyper;
  EXPECT_EQ(adam.beta1, 0.9f);
  EXPECT_EQ(adam.beta2, 0.999f);
  EXPECT_EQ(adam.epsilon, 1e-7f);
  EXPECT_EQ(read(R"({"type": "AdamW", "adamw_hparam": {"learning_rate": 1}})").section.hyper.weight_decay, 0.01f);
  EXPECT_EQ(read(R"({"type": "Nesterov", "nesterov_hparam": {"learning_rate": 1}})").section.hyper.momentum, 0.9f);
  EXPECT_EQ(read(R"({"type": "Nesterov", "nesterov_hparam": {"learning_rate": 1, "momentum_factor": 1}})")
                .problems.errors()
                .at(0)
                .message,
            "expected a number, at least 0 and less than 1, found the integer 1");
}

TEST(OptimizerSection, AScheduleOfSharesIsThatOfTheirSteps) {
  const auto schedule = [](const std::string& fields) {
    const Read r = read(cat(R"({"type": "SGD", "sgd_hparam": {"learning_rate": 0.5, )", fields, "}}"));
    EXPECT_EQ(r.text(), "");
    const Json effective = optimizer_schema().effective(r.section);
    const Read again = read(effective.text());
    EXPECT_EQ(optimizer_schema().effective(again.section).text(), effective.text()) << "shares survive a round trip";
    HyperParameters h = r.section.hyper;
    resolve_schedule(h, 200);
    return h;
  };
  const HyperParameters shares = schedule(R"("warmup_steps": "5%", "decay_start": 0.25, "decay_steps": "62.5%")");
  const HyperParameters steps = schedule(R"("warmup_steps": 10, "decay_start": 50, "decay_steps": 125)");
  for (int64_t n = 1; n <= 200; ++n) EXPECT_EQ(scheduled_rate(shares, n), scheduled_rate(steps, n)) << n;
  EXPECT_EQ(schedule(R"("warmup_steps": "100%")").warmup_steps.steps, 200);
  EXPECT_EQ(schedule(R"("warmup_steps": 1)").warmup_steps.steps, 1) << "a step, not the whole run";
  EXPECT_EQ(schedule(R"("decay_start": 0.001)").decay_start.steps, 1) << "a share of nearly nothing is still a step";
  const char* const bad[] = {"1.5", "-0.5", "\"0%\"", "\"101%\"", "\"ten%\"", "\"10\""};
  for (const char* value : bad) {
    const Read r = read(cat(R"({"type": "SGD", "sgd_hparam": {"learning_rate": 1, "decay_steps": )", value, "}}"));
    EXPECT_TRUE(r.text().starts_with("error /optimizer/sgd_hparam/decay_steps: expected an integer"))
        << value << ": " << r.text();
    EXPECT_NE(r.text().find("or a fraction of the run: a number between 0 and 1, or \"1%\" to \"100%\""),
              std::string::npos)
        << r.text();
  }
}

TEST(OptimizerSection, KindsOfDecayFollowTheirFormula) {
  const auto schedule = [](const std::string& fields) {
    Read r = read(cat(R"({"type": "SGD", "sgd_hparam": {"learning_rate": 0.5, "warmup_steps": 10, )", fields, "}}"));
    EXPECT_EQ(r.text(), "");
    resolve_schedule(r.section.hyper, 110);
    // The config that a run saves must be read as the same section.
    const Read again = read(optimizer_schema().effective(r.section).text());
    EXPECT_EQ(optimizer_schema().effective(again.section).text(), optimizer_schema().effective(r.section).text());
    return r.section.hyper;
  };
  const double pi = std::acos(-1.0);
  const HyperParameters cosine = schedule(R"("decay": "cosine", "end_lr": 0.1)"),
                        linear = schedule(R"("decay": "linear")"),
                        step = schedule(R"("decay": "step", "decay_steps": 30, "decay_factor": 0.1, "end_lr": 0.001)"),
                        constant = schedule(R"("decay": "constant")"),
                        part = schedule(R"("decay": "linear", "decay_start": 50, "decay_steps": 20, "end_lr": 0.2)");
  for (int64_t n = 1; n <= 120; ++n) {
    const auto m = static_cast<double>(n - 10);
    const double warm = 0.5 * static_cast<double>(n) / 10;
    const auto after = [&](double rate) { return n <= 10 ? warm : rate; };
    EXPECT_NEAR(scheduled_rate(cosine, n), after(n > 110 ? 0.1 : 0.1 + 0.4 * (1 + std::cos(pi * m / 100)) / 2), 1e-12)
        << n;
    EXPECT_NEAR(scheduled_rate(linear, n), after(n > 110 ? 0 : 0.5 * (100 - m) / 100), 1e-12) << n;
    EXPECT_NEAR(scheduled_rate(step, n), after(std::max(0.001, 0.5 * std::pow(0.1, std::ceil(m / 30)))), 1e-12) << n;
    EXPECT_EQ(scheduled_rate(constant, n), after(0.5)) << n;
    EXPECT_NEAR(scheduled_rate(part, n),
                after(n <= 50 ? 0.5 : std::max(0.2, 0.5 * std::max(0.0, static_cast<double>(70 - n)) / 20)), 1e-12)
        << n;
  }
  EXPECT_EQ(read(R"({"type": "SGD", "sgd_hparam": {"learning_rate": 1, "decay": "step"}})").text(),
            "error /optimizer/sgd_hparam/decay: \"step\" needs \"decay_steps\": the number of steps between two "
            "decreases of the rate\n");
}

TEST(OptimizerSection, TheObjectOfAnotherTypeIsANoteWhateverIsInIt) {
  for (const Example& e : examples()) {
    const std::string other = e.type == "SGD" ? "adam_hparam" : "sgd_hparam";
    const Read r = read(section_of(e, cat(", \"", other, R"(": {"learning_rate": -1})")));
    EXPECT_EQ(r.text(), cat("note /optimizer/", other, ": \"", other, "\" is accepted and has no effect: the type is ",
                            e.type, "\n"));
    EXPECT_EQ(optimizer_schema().effective(r.section).find(other), nullptr);
    EXPECT_NE(optimizer_schema().effective(r.section).find(e.object), nullptr);
  }
  EXPECT_EQ(read(R"({"type": "SGD", "adam_hparam": {}})").text(),
            "error /optimizer: an optimizer of type SGD needs the object \"sgd_hparam\"\n"
            "note /optimizer/adam_hparam: \"adam_hparam\" is accepted and has no effect: the type is SGD\n");
}

TEST(OptimizerSection, EveryTypeWorksWithLocalAndGlobalAndLazyGlobalWithAdam) {
  for (const Example& e : examples()) {
    EXPECT_EQ(read(section_of(e, R"(, "update_type": "Local")")).section.update(), UpdateType::local);
    const Read global = read(section_of(e, R"(, "update_type": "Global", "global_update": false)"));
    EXPECT_EQ(global.text(), "");
    EXPECT_EQ(global.section.update(), UpdateType::global);
    EXPECT_EQ(read(section_of(e, R"(, "global_update": true)")).section.update(), UpdateType::global);
    EXPECT_EQ(
        read(section_of(e, R"(, "update_type": "LazyGlobal")")).text(),
        e.type == "Adam"
            ? ""
            : "error /optimizer/update_type: LazyGlobal exists for Adam only; Local and Global work with every type\n");
  }
}

TEST(OptimizerSection, OlderSpellings) {
  const Read r = read(R"({"type": "Adam", "learning_rate": true, "global_update": false,
                          "adam_hparam": {"alpha": 0.005, "beta1": 0.9, "beta2": 0.999, "epsilon": 0.000001}})");
  EXPECT_EQ(r.text(),
            "note /optimizer/learning_rate: \"learning_rate\" is accepted and has no effect: set the rate in the "
            "*_hparam object\n");
  EXPECT_EQ(r.section.hyper.learning_rate, 0.005);
  EXPECT_EQ(read(R"({"type": "SGD", "sgd_hparam": {"learning_rate": 0, "atomic_update": true}})").text(), "")
      << "a rate of 0 is a rate";
}

TEST(OptimizerSection, MessagesForUnknownWordsListTheValidOnes) {
  EXPECT_EQ(read(R"({"type": "Adagrad", "adagrad_hparam": {"learning_rate": 1}})").problems.errors().at(0).message,
            "expected \"Adam\", \"AdamW\", \"SGD\", \"MomentumSGD\", \"Nesterov\", \"AdaGrad\", \"RMSProp\" or "
            "\"Ftrl\"; did you mean "
            "\"AdaGrad\"?, found the string \"Adagrad\"");
  EXPECT_EQ(read(R"({"type": "Ftrl", "ftlr_hparam": {"learning_rate": 1}})").text(),
            "error /optimizer/ftlr_hparam: optimizer has no field \"ftlr_hparam\"; did you mean \"ftrl_hparam\"?\n");
}

}  // namespace
}  // namespace hctr::test
