// A step of ranks on several hosts: the recorded parts, the calls between them, and their order.
#include <gtest/gtest.h>

#include "core/comm/host_comm.h"
#include "core/device/program.h"
#include "support/devices.h"
#include "support/run_ranks.h"
#include "unit/net/model/small_model.h"

namespace hctr::test {
namespace {

constexpr int64_t kStepsRecorded = 5;
constexpr int kRanks = 2;
constexpr SmallOptions kOnTwoRanks{.batch = 4, .ranks = kRanks, .learning_rate = 0.5f};

Config two_tables(const std::string& solver) {
  return small_config(kOnTwoRanks, R"(
      {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "keys", "top": "others",
       "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 100, "embedding_vec_size": 4, "combiner": "sum"}},
      {"type": "Interaction", "bottom": ["dense", "vectors"], "top": "products"},
      {"type": "Reshape", "bottom": "others", "top": "flat", "leading_dim": 8},
      {"type": "Concat", "bottom": ["products", "flat"], "top": "pairs"},)",
                      solver);
}

/// Simulates a recording: runs the calls passed to outside() at the end of each piece, and counts the pieces.
class Late : public Recording {
 public:
  void outside(std::function<void()> work) override { waiting_.push_back(std::move(work)); }
  void cut() override {
    is_outside = true;
    for (const auto& work : std::exchange(waiting_, {})) work();
    is_outside = false;
    ++cuts;
  }
  bool none_waits() const { return waiting_.empty(); }
  bool is_outside = false;
  int cuts = 0;

 private:
  std::vector<std::function<void()>> waiting_;
};

/// Acts as ranks of one host, or as ranks on hosts of their own. Counts exchanges and all-reduces inside and outside of
/// the recording.
class LateComm : public HostComm {
 public:
  LateComm(RankGroup& group, int rank, bool hosts, const Late& recording)
      : HostComm(group, rank), hosts_(hosts), recording_(recording) {}
  int host_of(int rank) const override { return hosts_ ? rank : 0; }
  void all_to_all(Context& ctx, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) override {
    ++(recording_.is_outside ? outside_exchanges : inside_exchanges);
    HostComm::all_to_all(ctx, in, send, out, receive);
  }
  void all_reduce(Context& ctx, Tensor tensor, Reduce how) override {
    ++(recording_.is_outside ? outside_sums : inside_sums);
    HostComm::all_reduce(ctx, tensor, how);
  }
  int outside_exchanges = 0, inside_exchanges = 0, outside_sums = 0, inside_sums = 0;

 private:
  bool hosts_;
  const Late& recording_;
};

enum class Way { at_once, late, program };

struct TrainedModel {
  std::vector<float> losses{};  // loss of each step
  int prepare_cuts = 0, step_cuts = 0;
  int outside_exchanges = 0, inside_exchanges = 0, outside_sums = 0, inside_sums = 0;
};

/// Trains, and returns what rank 0 has recorded about the steps.
TrainedModel train(const Config& config, bool hosts, Way way) {
  TrainedModel all;
  RankGroup group(kRanks, nullptr, std::chrono::seconds(60));
  run_ranks(kRanks, [&](int rank) {
    Late late;
    LateComm comm(group, rank, hosts, late);
    SmallModel small(kOnTwoRanks, config, kCpu, comm);
    Replica& model = small.model;
    Context& ctx = small.ctx;
    TrainedModel mine;
    const auto prepare = [&](Recording* recording) { model.prepare(ctx, recording, 0, small.batch); };
    const auto step = [&](Recording* recording) {
      const auto loss_known = [&](Context& known) {
        EXPECT_TRUE(way != Way::late || late.is_outside == hosts);
        mine.losses.push_back(to_host<float>(known.stream(), model.loss(Phase::train))[0]);
      };
      model.train_step(ctx, recording, 0, small.batch, small.binding, {.loss_known = loss_known});
    };
    Program programs[] = {Program(ctx.stream(), true, [&](Recording& recording) { prepare(&recording); }),
                          Program(ctx.stream(), true, [&](Recording& recording) { step(&recording); })};
    for (int64_t t = 0; t < kStepsRecorded; ++t) {
      const auto sample = [&](int64_t i) { return (t * kRanks + rank) * kOnTwoRanks.batch + i; };
      small.set_batch(
          t, [&](int64_t i) { return static_cast<float>(sample(i) % 3 == 0); },
          [&](int64_t i, int64_t d) { return static_cast<float>((sample(i) * 7 + d * 3) % 11) / 11; },
          [&](int64_t i, int64_t s) { return 10 * s + sample(i) * sample(i) % 5; });
      model.reserve_rows(t);
      if (way == Way::program) {
        programs[0].run();
        programs[1].run();
        continue;
      }
      Recording* const recording = way == Way::late ? &late : nullptr;
      late.cuts = 0;
      prepare(recording);
      mine.prepare_cuts = late.cuts;
      EXPECT_TRUE(late.none_waits()) << "sizes of keys must be known before the step";
      late.cuts = 0;
      step(recording);
      mine.step_cuts = late.cuts;
      EXPECT_TRUE(late.none_waits());
    }
    mine.outside_exchanges = comm.outside_exchanges, mine.inside_exchanges = comm.inside_exchanges;
    mine.outside_sums = comm.outside_sums, mine.inside_sums = comm.inside_sums;
    if (rank == 0) all = mine;
  });
  return all;
}

TEST(RecordedStep, BetweenHostsLeavesExchangesOutsideAndEndsAsTheSameStep) {
  for (const char* solver : {"", R"(, "on_nan": "skip")", R"(, "mixed_precision": "bf16")"}) {
    SCOPED_TRACE(solver);
    const Config config = two_tables(solver);
    const TrainedModel one_host = train(config, false, Way::at_once), at_once = train(config, true, Way::at_once),
                       late = train(config, true, Way::late), program = train(config, true, Way::program);
    ASSERT_EQ(one_host.losses.size(), size_t{kStepsRecorded});
    EXPECT_NE(one_host.losses.front(), one_host.losses.back());
    EXPECT_EQ(at_once.losses, one_host.losses);
    EXPECT_EQ(late.losses, one_host.losses);
    EXPECT_EQ(program.losses, one_host.losses);
    EXPECT_EQ(late.prepare_cuts, 2) << "one behind the keys of each table";
    EXPECT_EQ(late.step_cuts, 3) << "behind the vectors, behind the backward pass, and at the end";
    EXPECT_EQ(late.inside_exchanges, 0);
    EXPECT_GT(late.outside_exchanges, 0);
    EXPECT_EQ(late.outside_sums, kStepsRecorded) << "the loss";
    EXPECT_GE(late.inside_sums, kStepsRecorded) << "of dense gradients";
  }
}

TEST(RecordedStep, OfOneHostIsRecordedWhole) {
  const Config config = two_tables("");
  const TrainedModel late = train(config, false, Way::late);
  EXPECT_EQ(late.losses, train(config, false, Way::at_once).losses);
  EXPECT_EQ(late.prepare_cuts + late.step_cuts, 0);
  EXPECT_EQ(late.outside_exchanges + late.outside_sums, 0);
}

}  // namespace
}  // namespace hctr::test
