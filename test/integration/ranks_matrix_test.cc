// One model with a table for every placement, combiner and number of keys, trained with every optimizer on every number
// of ranks, as threads and as processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "every_table.h"
#include "optim/catalog.h"

namespace hctr::test {
namespace {

using EveryTableOnGpus = OnGpus<EveryTable>;

TEST_P(EveryTableOnGpus, TrainsTheModelOfOneGpu) {
  for (const Rule& rule : kRules) {
    if (rule.name != "SGD" && rule.name != "Adam" && rule.name != "Adam, lazy") continue;
    SCOPED_TRACE(rule.name);
    const std::string config = with_change(config_, kRules[0].section, rule.section),
                      many = planned(config, count_of(GetParam()));
    expect_same(alone(config), train(many, GetParam()), 2e-5, 2e-5);
    if (rule.name == "SGD") expect_same(alone(config), train(unrecorded(many), GetParam()), 2e-5, 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EveryTableOnGpus, ::testing::ValuesIn(kGpus), name_of);

TEST_F(EveryTable, TrainsTheModelOfOneRankWithEveryOptimizer) {
  for (const OptimizerType& type : optimizer_catalog())
    EXPECT_TRUE(
        std::any_of(std::begin(kRules), std::end(kRules),
                    [&](const Rule& rule) { return rule.section.starts_with(cat(R"("type": ")", type.name, "\"")); }))
        << "no rule for " << type.name;
  const Ranks all[] = {kThreads[0],   kThreads[1],   kThreads[2],  kProcesses[0],
                       kProcesses[1], kProcesses[2], kProcesses[3]};
  for (const Rule& rule : kRules) {
    const std::string config = with_change(config_, kRules[0].section, rule.section);
    const Result one = train(config, {"[0]"}, "one");
    ASSERT_EQ(one.losses.size(), 20u);
    for (const Ranks& ranks : all) {
      // Processes and threads give equal bits (ThreadsAndProcessesGiveEqualFiles), so for most rules a mixture of both
      // is enough.
      const bool wanted = ranks.gpu == kProcesses[3].gpu || rule.name == "SGD" || rule.name == "Adam";
      if (ranks.processes > 1 && (!wanted || !why_no_mpi().empty())) continue;
      if (kSanitized && rule.name != "SGD" && ranks.gpu != kThreads[1].gpu) continue;  // the same code
      SCOPED_TRACE(rule.name + " on " + ranks.gpu);
      expect_same(one, train(planned(config, count_of(ranks)), ranks), rule.tolerance);
    }
  }
}

}  // namespace
}  // namespace hctr::test
