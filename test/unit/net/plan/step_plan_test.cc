// The decisions of the plan rules for some models. For any ranks, tables and precision, a call that reads data runs
// after the call that writes the data.
#include "net/plan/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/net/plan/call_order.h"

namespace hctr::test {
namespace {

using Run = ops::WeightGradientRun;

LayerFacts trained_fc(const std::string& name, Run wgrad = Run::together) {
  return {.name = name,
          .trained = true,
          .weights = true,
          .weight_gradients = true,
          .matrix_gradient = true,
          .wgrad = wgrad};
}

/// A DLRM on a GPU in f16: two layers for dense values, an interaction, two layers and a loss.
StepFacts dlrm_facts() {
  StepFacts facts{.gpu = GpuTraits{}, .tensor_cores = true, .may_skip = true};
  facts.lookup_shares = ops::MultiprocessorShares{33, 99};
  LayerFacts bottom = trained_fc("bottom");
  bottom.fused_relu = bottom.dgrad_fills_gpu = true;
  facts.layers = {trained_fc("first"),
                  bottom,
                  {.name = "interaction", .trained = true, .first_reads = {0}},
                  trained_fc("third"),
                  trained_fc("fourth"),
                  {.name = "loss", .loss = true, .trained = true}};
  facts.tables = {{.name = "vectors"}};
  return facts;
}

/// A cross layer in parallel with a deep layer, and a table that is updated element by element, as in DeepFM and DCN.
StepFacts dcn_facts() {
  StepFacts facts{.gpu = GpuTraits{}, .tensor_cores = true};
  LayerFacts cross = trained_fc("cross", Run::in_order);
  cross.concurrent_until = 4;
  facts.layers = {{.name = "row", .trained = true, .own_memory = false, .first_reads = {0, 1}},
                  cross,
                  trained_fc("fc1", Run::apart),
                  trained_fc("fc2", Run::apart),
                  {.name = "concat", .trained = true, .own_memory = false},
                  {.name = "loss", .loss = true, .trained = true}};
  facts.tables = {{.name = "deep"}, {.name = "wide", .by_element = true}};
  return facts;
}

bool applies(const StepPlan& plan, const StepRule& rule) { return std::ranges::count(plan.rules, &rule) > 0; }

/// The facts of all steps whose order of calls is tested.
std::vector<StepFacts> many_facts() {
  std::vector<StepFacts> all;
  for (const StepFacts& model : {dlrm_facts(), dcn_facts()})
    for (const int ranks : {1, 2})
      for (const bool may_skip : {false, true})
        for (const bool tensor_cores : {false, true})
          for (const bool penalty : {false, true})
            for (const int exchange : {0, 1, 2, 3}) {
              StepFacts facts = model;
              facts.ranks = ranks;
              facts.may_skip = may_skip;
              facts.tensor_cores = tensor_cores;
              facts.penalty = penalty;
              facts.layers[3].weight_copies = tensor_cores;
              facts.layers[1].weight_copies = tensor_cores;
              for (size_t e = 0; ranks > 1 && e < facts.tables.size(); ++e) {
                facts.tables[e].exchanges_by_kernels = exchange == 1;
                facts.tables[e].replicated_rows = exchange == 2 && e == 0;
              }
              facts.recorded_whole = ranks == 1 || exchange < 3;
              if (ranks > 1) facts.layers[1].sums_over_ranks = facts.layers[3].sums_over_ranks = true;
              all.push_back(facts);
            }
  return all;
}

std::string describe_facts(const StepFacts& facts) {
  return cat(facts.layers[0].name, ", ranks ", facts.ranks, ", may skip ", facts.may_skip, ", tensor cores ",
             facts.tensor_cores, ", penalty ", facts.penalty, ", merged ", facts.tables[0].exchanges_by_kernels,
             ", replicated ", facts.tables[0].replicated_rows, ", whole ", facts.recorded_whole);
}

/// The calls of a part for a table, including calls for the table's group.
std::vector<size_t> of_table(const StepPlan& plan, StepPart part, size_t table) {
  std::vector<size_t> found;
  for (size_t c = 0; c < plan.calls.size(); ++c) {
    const bool group =
        part == StepPart::look_up || part == StepPart::receive_gradients || part == StepPart::update_rows;
    if (plan.calls[c].part != part) continue;
    const size_t index = plan.calls[c].index;
    if (group ? std::ranges::count(plan.groups[index].tables, table) > 0 : index == table) found.push_back(c);
  }
  return found;
}

TEST(StepPlan, ALayerReadsWhatIsWritten) {
  for (const StepFacts& facts : many_facts()) {
    SCOPED_TRACE(describe_facts(facts));
    const StepPlan plan = plan_step(facts);
    const CallOrder order(plan);
    for (size_t n = 0; n < facts.layers.size(); ++n) {
      const auto forward = order.calls(StepPart::forward, n), backward = order.calls(StepPart::backward, n);
      ASSERT_EQ(forward.size(), 1u);
      ASSERT_EQ(backward.size(), 1u);
      EXPECT_TRUE(order.all_before(forward, backward));
      for (const size_t e : facts.layers[n].first_reads) {
        const auto vectors = of_table(plan, facts.alone() ? StepPart::look_up : StepPart::combine_vectors, e);
        ASSERT_EQ(vectors.size(), 1u);
        EXPECT_TRUE(order.all_before(vectors, forward)) << "vectors of " << facts.tables[e].name;
      }
      for (const size_t copies : order.calls(StepPart::copy_weights))
        if (facts.layers[n].weight_copies && plan.calls[copies].index <= n && n < plan.calls[copies].end) {
          EXPECT_TRUE(order.before(copies, forward[0])) << "copies of weights";
        }
      for (const size_t wgrad : order.calls(StepPart::weight_gradients, n)) {
        EXPECT_TRUE(order.before(backward[0], wgrad));
      }
    }
    const size_t last = facts.layers.size() - 1;
    EXPECT_TRUE(order.all_before(order.calls(StepPart::forward, last), order.calls(StepPart::report_loss)));
    EXPECT_TRUE(order.all_before(order.calls(StepPart::all_reduce_loss), order.calls(StepPart::report_loss)));
  }
}

TEST(StepPlan, ConcurrentLayersWaitForTheirNeighbours) {
  const StepPlan plan = plan_step(dcn_facts());
  const CallOrder order(plan);
  const auto one = [&](StepPart part, size_t layer) { return order.calls(part, layer).at(0); };
  const size_t forward = one(StepPart::forward, 1), backward = one(StepPart::backward, 1);
  EXPECT_EQ(plan.calls[forward].stream, StepStream::layers);
  EXPECT_TRUE(order.before(one(StepPart::forward, 0), forward));
  EXPECT_TRUE(order.before(forward, one(StepPart::forward, 4)));
  EXPECT_FALSE(order.before(forward, one(StepPart::forward, 3)));
  EXPECT_TRUE(order.before(one(StepPart::backward, 4), backward));
  EXPECT_FALSE(order.before(one(StepPart::backward, 3), backward));
  EXPECT_TRUE(order.before(backward, one(StepPart::backward, 0)));
}

TEST(StepPlan, UpdatesWaitForTheirGradientsAndForWhetherTheStepIsSkipped) {
  for (const StepFacts& facts : many_facts()) {
    SCOPED_TRACE(describe_facts(facts));
    const StepPlan plan = plan_step(facts);
    const CallOrder order(plan);
    std::vector<size_t> searches = order.calls(StepPart::search_gradients);
    if (searches.empty()) searches = order.calls(StepPart::search_operands);
    EXPECT_EQ(searches.size(), facts.may_skip ? 1u : 0u);
    for (size_t e = 0; e < facts.tables.size(); ++e) {
      const auto update = of_table(plan, StepPart::update_rows, e);
      ASSERT_EQ(update.size(), 1u);
      for (const StepPart part : {StepPart::sum_contributions, StepPart::sum_replicated, StepPart::send_gradients,
                                  StepPart::receive_gradients}) {
        EXPECT_TRUE(order.all_before(of_table(plan, part, e), update)) << name_of(part);
      }
      EXPECT_TRUE(order.all_before(of_table(plan, StepPart::sum_contributions, e),
                                   of_table(plan, StepPart::send_gradients, e)));
      EXPECT_TRUE(order.all_before(searches, update));
      EXPECT_TRUE(order.all_before(of_table(plan, StepPart::send_gradients, e), searches));
      const auto end = order.calls(StepPart::update_weights);
      EXPECT_FALSE(of_table(plan, StepPart::send_gradients, e).empty());
      ASSERT_EQ(end.size(), 1u);
    }
    const auto weights = order.calls(StepPart::update_weights);
    for (const StepPart part :
         {StepPart::weight_gradients, StepPart::grouped_all, StepPart::grouped_sums, StepPart::grouped_products,
          StepPart::penalty_gradients, StepPart::all_reduce_weights, StepPart::report_loss}) {
      EXPECT_TRUE(order.all_before(order.calls(part), weights)) << name_of(part);
    }
    EXPECT_TRUE(order.all_before(searches, weights));
    if (!order.calls(StepPart::search_gradients).empty()) {
      EXPECT_TRUE(order.all_before(order.calls(StepPart::grouped_products), searches));
    }
  }
}

/// At the end of a step, the compute stream must wait for all work. Otherwise the work could overlap the next step.
TEST(StepPlan, TheStepEndsWithAllThatWasQueued) {
  for (const StepFacts& facts : many_facts()) {
    SCOPED_TRACE(describe_facts(facts));
    StepPlan plan = plan_step(facts);
    plan.calls.push_back({.part = StepPart::report_loss});  // stands for the next step
    const CallOrder order(plan);
    for (size_t c = 0; c + 1 < plan.calls.size(); ++c) {
      const StepPart part = plan.calls[c].part;
      if (part == StepPart::record_event || part == StepPart::wait_event || part == StepPart::end_piece) continue;
      EXPECT_TRUE(order.before(c, plan.calls.size() - 1)) << name_of(part) << " " << plan.calls[c].index;
    }
  }
}

TEST(StepPlan, EventsCrossWhereARecordingIsLeftOrEnds) {
  for (const StepFacts& facts : many_facts()) {
    const StepPlan plan = plan_step(facts);
    const bool any = std::ranges::count(plan.event_crosses, true) > 0;
    EXPECT_EQ(any, !facts.recorded_whole) << describe_facts(facts);
    const auto ends = std::ranges::count(plan.calls, StepPart::end_piece, &PlannedCall::part);
    EXPECT_EQ(ends, facts.recorded_whole ? 0 : 3) << describe_facts(facts);
    for (const PlannedCall& call : plan.calls) EXPECT_TRUE(facts.recorded_whole <= !call.outside);
  }
}

TEST(StepPlan, GradientsOfEmbeddingsAreReducedBehindTheBottomMlpWhereItFillsTheGpu) {
  StepFacts facts = dlrm_facts();
  const auto reduced_behind = [&](size_t layer) {
    const StepPlan plan = plan_step(facts);
    const CallOrder order(plan);
    return order.before(order.calls(StepPart::backward, layer).at(0), order.calls(StepPart::send_gradients).at(0));
  };
  EXPECT_TRUE(reduced_behind(1));
  EXPECT_FALSE(reduced_behind(0));
  facts.layers[1].dgrad_fills_gpu = false;
  EXPECT_FALSE(reduced_behind(1));
  EXPECT_TRUE(reduced_behind(2));
}

TEST(StepPlan, ASkipIsKnownBeforeTheWgradsInF16AloneOnOneGpu) {
  StepFacts facts = dlrm_facts();
  StepPlan plan = plan_step(facts);
  const CallOrder order(plan);
  EXPECT_EQ(order.calls(StepPart::search_operands).size(), 1u);
  EXPECT_FALSE(order.all_before(order.calls(StepPart::grouped_products), order.calls(StepPart::search_operands)));
  EXPECT_TRUE(order.all_before(order.calls(StepPart::grouped_sums), order.calls(StepPart::search_operands)));
  for (int without = 0; without < 4; ++without) {
    StepFacts other = facts;
    if (without == 0) other.layers[3].finite_products = false;
    if (without == 1) other.ranks = 2;
    if (without == 2) other.layers[0].first_reads = std::exchange(other.layers[2].first_reads, {});
    if (without == 3) other.may_skip = false;
    plan = plan_step(other);
    EXPECT_FALSE(applies(plan, kSkipKnownEarly)) << without;
    EXPECT_TRUE(CallOrder(plan).calls(StepPart::search_operands).empty()) << without;
  }
}

TEST(StepPlan, TheNextBatchIsPreparedBehindTheEmbeddingsWhereWgradsComeLast) {
  StepFacts facts = dlrm_facts();
  StepPlan plan = plan_step(facts);
  ASSERT_TRUE(plan.has_prefetch_point);
  const CallOrder order(plan);
  const size_t point = order.calls(StepPart::prefetch_point).at(0);
  EXPECT_TRUE(order.before(order.calls(StepPart::backward, 2).at(0), point));
  EXPECT_FALSE(order.before(order.calls(StepPart::backward, 1).at(0), point));
  // Wgrads run in order on a CPU, and with large batches.
  for (LayerFacts& layer : facts.layers) layer.wgrad = Run::in_order;
  EXPECT_FALSE(plan_step(facts).has_prefetch_point);
  EXPECT_FALSE(plan_step(dcn_facts()).has_prefetch_point);
}

TEST(StepPlan, LookUpsRunBesideTheFirstLayersWithSharesOfTheGpu) {
  StepFacts facts = dlrm_facts();
  StepPlan plan = plan_step(facts);
  const CallOrder order(plan);
  const size_t look_up = order.calls(StepPart::look_up).at(0), first = order.calls(StepPart::forward, 0).at(0);
  EXPECT_FALSE(order.before(look_up, first) || order.before(first, look_up));
  EXPECT_EQ(plan.calls[look_up].multiprocessors, 99);
  EXPECT_EQ(plan.calls[first].multiprocessors, 33);
  EXPECT_EQ(plan.calls[order.calls(StepPart::forward, 3).at(0)].multiprocessors, 0);
  facts.tables.push_back({.name = "others"});
  EXPECT_FALSE(applies(plan_step(facts), kLookupShares));
  EXPECT_TRUE(applies(plan_step(facts), kConcurrentLookup));
  EXPECT_FALSE(applies(plan_step(dcn_facts()), kConcurrentLookup));
}

TEST(StepPlan, OnRanksTheLastWgradsComeBehindTheGradientsOfEmbeddings) {
  for (const bool by_engines : {false, true}) {
    StepFacts facts = dlrm_facts();
    facts.ranks = 2;
    facts.tables[0].sends_by_engines = by_engines;
    const StepPlan plan = plan_step(facts);
    const CallOrder order(plan);
    const size_t sent = order.calls(StepPart::send_gradients).at(0);
    EXPECT_GT(order.calls(StepPart::weight_gradients, 3).at(0), sent);
    EXPECT_EQ(order.calls(StepPart::weight_gradients, 4).at(0) > sent, by_engines);
  }
}

TEST(StepPlan, KeysAreTakenAheadWhereNoHostTakesPart) {
  StepFacts facts = dcn_facts();
  EXPECT_TRUE(plan_step(facts).choices.keys_ahead);
  facts.tables[0].on_disk = true;
  EXPECT_FALSE(plan_step(facts).choices.keys_ahead);
  facts = dcn_facts();
  facts.ranks = 2;
  EXPECT_FALSE(plan_step(facts).choices.keys_ahead);
  for (TableFacts& table : facts.tables) table.exchanges_by_kernels = true;
  EXPECT_TRUE(plan_step(facts).choices.keys_ahead);
  facts.recorded_whole = false;
  EXPECT_FALSE(plan_step(facts).choices.keys_ahead);
}

/// Every rule must document its reason and a measured gain.
TEST(StepPlan, EachRuleSaysWhyAndWhatItGained) {
  for (const StepRule* rule : step_rules()) {
    EXPECT_GT(std::string(rule->name).size(), 5u);
    EXPECT_GT(std::string(rule->reason).size(), 40u) << rule->name;
    EXPECT_GT(std::string(rule->gain).size(), 10u) << rule->name;
  }
}

}  // namespace
}  // namespace hctr::test
