// Trains a model with a table for every placement, combiner and number of keys, with every optimizer, on every number
// of ranks, as threads and as processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "config/sections/optimizer_catalog.h"
#include "every_table.h"

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

/// Two processes with a GPU each. NCCL connects them by sockets, as on different hosts.
class EveryTableOnTwoHosts : public EveryTable, public ::testing::WithParamInterface<Rule> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not_here({"[[0, 1]]"}); !why.empty()) GTEST_SKIP() << why;
    EveryTable::SetUp();
    device_ = "cuda";
  }
};

TEST_P(EveryTableOnTwoHosts, OfOneGpuEachTrainsTheModelOfOneGpu) {
  const Rule& rule = GetParam();
  const std::string config = with_change(config_, kRules[0].section, rule.section), many = planned(config, 2);
  const auto train_on_hosts = [&](const std::string& changed) {
    const Result result = on_hosts(changed, {"a", "b"}, "[[0], [1]]");
    const Json summary = Json::read_file(folder_ / "hosts-run" / "summary.json");
    RecordProperty("between_hosts", summary.find("sent_to_other_hosts")->text());
    return result;
  };
  const Result one = alone(config), first = train_on_hosts(many);
  expect_same(one, first, 2e-5, 2e-5);
  if (rule.name != "SGD" && rule.name != "Adam, lazy") return;
  const Result again = train_on_hosts(many);
  EXPECT_EQ(again.losses, first.losses);
  EXPECT_EQ(again.dense, first.dense);
  EXPECT_EQ(again.rows, first.rows);
  if (rule.name == "SGD")
    expect_same(one, train_on_hosts(with_change(many, "\"seed\": 7", "\"seed\": 7, \"exchange_precision\": \"fp16\"")),
                1e-3, 1e-3, 1e-3);
}

/// Returns the letters of the rule's name, such as "Adamlazy" for "Adam, lazy".
std::string letters_of(const ::testing::TestParamInfo<Rule>& rule) {
  std::string name = rule.param.name;
  std::erase_if(name, [](char c) { return c == ',' || c == ' '; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(With, EveryTableOnTwoHosts, ::testing::ValuesIn(kRules), letters_of);

TEST_F(EveryTable, TrainsTheModelOfOneRankWithEveryOptimizer) {
  for (const OptimizerType& type : optimizer_catalog())
    EXPECT_TRUE(
        std::any_of(std::begin(kRules), std::end(kRules),
                    [&](const Rule& rule) { return rule.section.starts_with(cat(R"("type": ")", type.name, "\"")); }))
        << "no rule in every_table.h for " << type.name;
  const Ranks all[] = {kThreads[0],   kThreads[1],   kThreads[2],  kProcesses[0],
                       kProcesses[1], kProcesses[2], kProcesses[3]};
  for (const Rule& rule : kRules) {
    if (kSanitized && rule.name != "SGD" && !rule.name.starts_with("Adam,"))
      continue;  // sanitizers need one case per code path
    const std::string config = with_change(config_, kRules[0].section, rule.section);
    const Result one = train(config, {"[0]"}, "one");
    ASSERT_EQ(one.losses.size(), 20u);
    for (const Ranks& ranks : all) {
      // ThreadsAndProcessesGiveEqualFiles shows that processes and threads give equal bits, so most rules run only on
      // threads. Under sanitizers, one combination of threads and processes runs, too.
      const bool every = !kSanitized && (rule.name == "SGD" || rule.name == "Adam");
      const bool mixture = kSanitized && ranks.gpu == kProcesses[3].gpu && rule.name == "SGD";
      if (!every && !mixture && ranks.gpu != kThreads[1].gpu) continue;
      if (ranks.processes > 1 && !why_no_mpi().empty()) continue;
      SCOPED_TRACE(rule.name + " on " + ranks.gpu);
      expect_same(one, train(planned(config, count_of(ranks)), ranks), rule.tolerance);
    }
  }
}

TEST_F(EveryTable, TrainsOnSeveralHostsAsOnOne) {
  for (const char* precision : {"", R"(, "exchange_precision": "fp16")"}) {
    const std::string config = planned(with_change(config_, "\"seed\": 7", cat("\"seed\": 7", precision)), 4);
    const Result threads = train(config, kThreads[2]);
    for (const std::vector<const char*>& hosts : {std::vector{"a", "a", "b", "b"}, {"a", "b", "c", "a"}}) {
      if (kSanitized && hosts[1] == hosts[0]) continue;  // sanitizers need one case per code path
      const Result many = on_hosts(config, hosts, "\"all\"");
      EXPECT_EQ(many.losses, threads.losses);
      EXPECT_EQ(many.metrics, threads.metrics);
      EXPECT_EQ(many.dense, threads.dense);
      for (size_t e = 0; e < tables_.size(); ++e) EXPECT_EQ(many.rows[e], threads.rows[e]) << tables_[e].name;
    }
    if (kSanitized) return;
  }
}

}  // namespace
}  // namespace hctr::test
