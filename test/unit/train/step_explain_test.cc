// Step plans of the sample configs equal the stored plans, and plans of real models equal predicted plans.
#include "train/step_explain.h"

#include <gtest/gtest.h>

#include "core/comm/host_comm.h"
#include "core/comm/self_comm.h"
#include "formats/data/batch_layout.h"
#include "infer/load_config.h"
#include "net/model/replica.h"
#include "score/batch_reading.h"
#include "score/batch_ring.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/run_ranks.h"
#include "train/placement_plan.h"

namespace hctr::test {
namespace {

constexpr const char* kSampleConfigs[] = {
    "criteo/config.json",    "dcn/config.json",        "dcnv2/config.json",     "deepfm/config.json",
    "din/din.json",          "dlrm/config.json",       "movielens/config.json", "multi_node/config.json",
    "multitask/config.json", "quickstart/config.json", "wdl/wdl.json"};

struct Variant {
  const char* name;
  std::vector<std::string> changes;
  bool cpu = false;
};

std::vector<Variant> variants() {
  return {{"one_gpu", {"solver.gpu=[0]", "solver.mixed_precision=1024", "solver.batchsize=2048"}},
          {"one_gpu_tf32", {"solver.gpu=[0]", "solver.mixed_precision=null", "solver.enable_tf32_compute=true"}},
          {"two_gpus", {"solver.gpu=[0,1]", "solver.mixed_precision=1024"}},
          {"two_hosts", {"solver.gpu=[[0],[0]]", "solver.mixed_precision=1024"}},
          {"cpu", {"solver.gpu=[0]", "solver.mixed_precision=null"}, true}};
}

Config sample(const std::string& name, const std::vector<std::string>& changes) {
  return load_config(source_dir() / "samples" / name, false, Log::silent(), {.changes = changes});
}

std::string stored_name(std::string sample, const Variant& variant) {
  sample = sample.substr(0, sample.find('/'));
  return cat(sample, ".", variant.name, ".txt");
}

/// A changed plan changes which work overlaps. If the change is intended and measured, store the new plan with the
/// command in the failure message.
TEST(ExplainStep, OfTheSamplesIsThePlanThatIsStored) {
  for (const std::string name : kSampleConfigs)
    for (const Variant& variant : variants()) {
      const std::string stored = cat("test/unit/train/step_plans/", stored_name(name, variant));
      const Config config = sample(name, variant.changes);
      const StepPlan plan =
          plan_step(expected_step_facts(config, variant.cpu ? std::nullopt : std::optional(GpuTraits{})));
      std::string command =
          cat("build/cpu/bin/huge_ctr --explain step samples/", name, " --device ", variant.cpu ? "cpu" : "cuda");
      for (const std::string& change : variant.changes) command += cat(" --set ", change);
      EXPECT_TRUE(calls_table(plan) == read_file(source_dir() / stored))
          << stored << " differs; if that is meant: " << command << " | sed '1,/^Step k/d' > " << stored;
    }
}

/// The plan of one rank's model on the CPU.
StepPlan bound_plan(const Config& config, Communicator& comm) {
  const int64_t samples = samples_of_rank(config.solver.batchsize, comm.size());
  Runtime runtime(
      Device{}, {.threads = 1, .seed = 1, .tf32 = config.solver.enable_tf32_compute, .several_ranks = comm.size() > 1});
  const std::vector<Placement> placements =
      comm.size() > 1 ? expected_placements(config, plan_problem(config, comm.size(), {})) : std::vector<Placement>();
  const Replica model(config, runtime, comm, {samples, samples, 1, placements});
  const BatchLayout layout = batch_layout(config, samples, runtime.device());
  const BatchRing ring(layout, 1, runtime.device());
  return *model.bind(Phase::train, batch_tensors(ring, 0, config.data.sparse.size())).plan;
}

TEST(ExplainStep, IsThePlanOfTheBoundModel) {
  for (const std::string name : kSampleConfigs)
    for (const char* const precision : {"null", "1024"}) {
      std::vector<std::string> changes = {"solver.batchsize=64", cat("solver.mixed_precision=", precision)};
      SCOPED_TRACE(cat(name, ", precision ", precision));
      changes.push_back("solver.gpu=[0]");
      const Config one = sample(name, changes);
      SelfComm alone;
      EXPECT_EQ(calls_table(bound_plan(one, alone)), calls_table(plan_step(expected_step_facts(one, std::nullopt))));
      changes.back() = "solver.gpu=[0,1]";
      const Config two = sample(name, changes);
      RankGroup group(2, nullptr, std::chrono::seconds(60));
      run_ranks(2, [&](int rank) {
        HostComm comm(group, rank);
        const std::string bound = calls_table(bound_plan(two, comm));
        if (rank == 0) {
          EXPECT_EQ(bound, calls_table(plan_step(expected_step_facts(two, std::nullopt))));
        }
      });
    }
}

TEST(ExplainStep, SaysItsRulesWithReasonAndFigure) {
  const std::string text = explain_step(sample("dlrm/config.json", {"solver.mixed_precision=1024"}), GpuTraits{});
  EXPECT_NE(text.find("on one GPU of compute capability 9.0 with 132 multiprocessors, 1024 samples"), std::string::npos)
      << text;
  EXPECT_NE(text.find("overflow check runs before the wgrads\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Measured: H100, DLRM in fp16"), std::string::npos) << text;
  EXPECT_NE(text.find("after the prefetch point of step k"), std::string::npos) << text;
}

}  // namespace
}  // namespace hctr::test
