// Dense gradients in buckets: the boundaries of the buckets, all-reduces that wait for the layers of their bucket, and
// sums equal to those of a single all-reduce.
#include "net/model/gradient_exchange.h"

#include <gtest/gtest.h>

#include <random>

#include "core/comm/host_comm.h"
#include "support/devices.h"
#include "support/run_ranks.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

using Bucket = GradientExchange::Bucket;

TEST(GradientBuckets, AreCutAtBordersOfNodesFromTheEndAndComeInTheOrderOfTheBackwardPass) {
  // The gradients of nodes 1 to 4. They are stored in file order, except that node 3 comes before node 2. Node 2 has
  // two weights.
  const std::vector<GradientRange> places = {{1, 0, 10}, {3, 10, 14}, {2, 14, 20}, {2, 20, 21}, {4, 21, 30}};
  const auto same = [](const std::vector<Bucket>& got, const std::vector<Bucket>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i].begin == expected[i].begin && got[i].count == expected[i].count &&
                  got[i].node == expected[i].node)
          << "bucket " << i;
  };
  same(gradient_buckets(places, 1000), {{0, 30, 1}});
  same(gradient_buckets(places, 9), {{21, 9, 4}, {10, 11, 2}, {0, 10, 1}});
  same(gradient_buckets(places, 1), {{21, 9, 4}, {10, 4, 3}, {14, 7, 2}, {0, 10, 1}});
  same(gradient_buckets({}, 1), {});
}

/// Records the buckets that are summed.
class Listener : public HostComm {
 public:
  using HostComm::HostComm;
  void all_reduce(Context& ctx, Tensor tensor, Reduce how) override {
    summed.push_back(tensor);
    HostComm::all_reduce(ctx, tensor, how);
  }
  std::vector<Tensor> summed;
};

/// Layers whose file order differs from their execution order.
const char* const kLayers = R"(
  {"type": "InnerProduct", "bottom": "relu1", "top": "fc2", "fc_param": {"num_output": 40}},
  {"type": "InnerProduct", "bottom": "dense", "top": "fc1", "fc_param": {"num_output": 70}},
  {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
  {"type": "InnerProduct", "bottom": "fc2", "top": "fc3", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["fc3", "label"], "top": "loss"})";

TEST(GradientExchange, BucketsSumAsOneCallDoesAndNotBeforeTheirLayersAreDone) {
  const Config config = config_of(kLayers);
  Problems problems;
  const Graph graph = wire(config, 8, problems);
  struct Row {
    int ranks;
    int64_t bytes;
  };
  for (const auto& [ranks, bytes] : {Row{3, 1}, Row{3, 1000}, Row{3, GradientExchange::kBucketBytes}, Row{2, 1},
                                     Row{2, 1000}, Row{2, GradientExchange::kPeerBucketBytes}}) {
    SCOPED_TRACE(cat("buckets of ", bytes, " bytes on ", ranks, " ranks"));
    RankGroup group(ranks, nullptr, std::chrono::seconds(60));
    run_ranks(ranks, [&, bytes = bytes, ranks = ranks](int rank) {
      Runtime runtime(kCpu, {.threads = 1, .seed = 5});
      Context ctx(runtime, runtime.compute_stream());
      const Weights weights(config, graph, runtime), whole(config, graph, runtime);
      Listener comm(group, rank);
      GradientExchange exchange(weights, runtime, comm, bytes);
      EXPECT_EQ(exchange.buckets().size(), bytes == 1 ? 3u : bytes == 1000 ? 2u : 1u);
      std::mt19937_64 random(static_cast<uint64_t>(rank) + 1);
      std::vector<float> values;
      for (int64_t i = 0; i < weights.all_gradients().elements(); ++i)
        values.push_back(symmetric_float(static_cast<uint32_t>(random()), 1e3f));
      from_host(ctx.stream(), whole.all_gradients(), values);
      from_host(ctx.stream(), weights.all_gradients(), values);
      comm.HostComm::all_reduce(ctx, whole.all_gradients(), Reduce::sum);
      float found = 0;
      for (size_t n = graph.nodes.size(); n-- > 0;) {
        const size_t before = comm.summed.size();
        exchange.node_done(ctx, n, {10, &found});
        for (size_t i = before; i < comm.summed.size(); ++i)
          for (size_t later = 0; later < n; ++later)
            for (const Tensor& gradient : weights.gradients_of_node(later))
              EXPECT_FALSE(comm.summed[i].bytes() <= gradient.bytes() &&
                           gradient.bytes() < comm.summed[i].bytes() + comm.summed[i].spec().bytes())
                  << "node " << later << " is summed when node " << n << " is done";
      }
      exchange.join(ctx);
      EXPECT_EQ(found, exchange.searches_sums() ? 1 : 0) << "sums beyond 10 in each rank's half";
      EXPECT_EQ(comm.summed.size(), ranks == 2 ? 0 : exchange.buckets().size()) << "two ranks write to each other";
      EXPECT_EQ(to_host<float>(ctx.stream(), weights.all_gradients()),
                to_host<float>(ctx.stream(), whole.all_gradients()));
    });
  }
}

}  // namespace
}  // namespace hctr::test
