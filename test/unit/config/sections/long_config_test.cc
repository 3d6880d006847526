// Configs with many layers: stack depth and time of every processing stage grow at most linearly with the layer count.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "net/graph/graph.h"

namespace hctr::test {
namespace {

/// A config with a GEMM, then ReLUs, then a loss that reads "label". `reversed`: lists the last layer first.
Json chain(int layers, bool reversed) {
  Json::Array chained;
  chained.emplace_back(Json::Object{
      {"type", "InnerProduct"}, {"bottom", "dense"}, {"top", "t0"}, {"fc_param", Json::Object{{"num_output", 1}}}});
  for (int i = 1; i < layers; ++i)
    chained.emplace_back(Json::Object{{"type", "ReLU"}, {"bottom", cat("t", i - 1)}, {"top", cat("t", i)}});
  chained.emplace_back(Json::Object{
      {"type", "BinaryCrossEntropyLoss"}, {"bottom", Json::Array{cat("t", layers - 1), "label"}}, {"top", "loss"}});
  if (reversed) std::reverse(chained.begin(), chained.end());
  chained.insert(chained.begin(), Json::Object{{"type", "Data"},
                                               {"source", "list.txt"},
                                               {"check", "None"},
                                               {"label", Json::Object{{"top", "label"}, {"label_dim", 1}}},
                                               {"dense", Json::Object{{"top", "dense"}, {"dense_dim", 1}}},
                                               {"sparse", Json::Array{}}});
  return Json::Object{{"solver", Json::Object{{"batchsize", 8}, {"max_iter", 1}}},
                      {"optimizer", Json::parse(R"({"type": "SGD", "sgd_hparam": {"learning_rate": 1}})", "sgd")},
                      {"layers", std::move(chained)}};
}

std::string first_error(const Problems& problems) {
  return problems.errors().empty() ? "" : problems.errors()[0].pointer + ": " + problems.errors()[0].message;
}

TEST(LongConfig, IsWiredInAnyOrderOfItsLayers) {
  constexpr int kLongChain = kSanitized ? 20'000 : 100'000;  // sanitizers enlarge stack frames
  for (const bool reversed : {false, true}) {
    Problems problems;
    const Config config = read_config(chain(kLongChain, reversed), problems);
    const Graph graph = wire(config, 8, problems);
    ASSERT_EQ(first_error(problems), "");
    ASSERT_EQ(graph.nodes.size(), size_t{kLongChain} + 1);
    EXPECT_EQ(graph.nodes[1].entry->tops[0], "t1");
    EXPECT_EQ(graph.losses, std::vector<size_t>{kLongChain});
  }
}

TEST(LongConfig, OfUnknownNamesIsReportedInMessagesOfBoundedLength) {
  Problems problems;
  Config config = read_config(chain(20000, false), problems);
  for (LayerEntry& layer : config.layers) layer.bottoms[0] = "nothing like them";
  wire(config, 8, problems);
  EXPECT_EQ(problems.errors().size(), 20001u);
  for (const Problems::Entry& error : problems.errors()) ASSERT_LT(error.message.size(), 1000u);
}

TEST(LongConfig, ACycleIsNamedWhereItCloses) {
  Problems problems;
  Config config = read_config(chain(5, false), problems);
  config.layers[0].bottoms[0] = "t3";
  wire(config, 8, problems);
  EXPECT_EQ(first_error(problems), "/layers/2/bottom: \"t0\" depends on this layer's own output, which is a cycle");
  EXPECT_EQ(problems.errors().size(), 1u);
}

}  // namespace
}  // namespace hctr::test
