// The optimizer section: what users write, and the messages they get.
#include "optim/optimizer_section.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "optim/catalog.h"
#include "support/plain_optimizer.h"

namespace hctr::test {
namespace {

struct Read {
  OptimizerSection section;
  Problems problems;

  std::string text() const {
    std::string out;
    for (const auto& e : problems.errors()) out += "error " + e.pointer + ": " + e.message + "\n";
    for (const auto& e : problems.warnings()) out += "warning " + e.pointer + ": " + e.message + "\n";
    for (const auto& e : problems.notes()) out += "note " + e.pointer + ": " + e.message + "\n";
    return out;
  }
};

Read read(const std::string& json) {
  Read r;
  r.section = optimizer_schema().parse(Json::parse(json, "c.json"), "/optimizer", r.problems);
  return r;
}

/// A section of each type: its object's name, and the constants that it must have.
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

TEST(OptimizerSection, ConstantsWithoutADefaultAreRequired) {
  for (const Example& e : examples()) {
    const Read r = read(cat(R"({"type": ")", e.type, "\", \"", e.object, "\": {}}"));
    EXPECT_EQ(r.problems.errors().at(0).message, cat(e.object, " needs \"learning_rate\": step size, lr"));
    EXPECT_EQ(r.problems.errors().size() > 1, !e.constants.empty());
  }
  EXPECT_EQ(read(R"({"type": "Nesterov", "nesterov_hparam": {"learning_rate": 1, "momentum_factor": 1}})")
                .problems.errors()
                .at(0)
                .message,
            "expected a number, at least 0 and less than 1, found the integer 1");
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
            "note /optimizer/learning_rate: \"learning_rate\" is accepted and has no effect: the rate stands in the "
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
