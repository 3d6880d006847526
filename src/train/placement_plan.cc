#include "train/placement_plan.h"

#include <algorithm>
#include <filesystem>

#include "engine/placement/measure.h"
#include "engine/placement/plan_file.h"

namespace hctr {
namespace {

constexpr int64_t kSampled = 16384;  // number of samples that are read to count keys

int64_t row_bytes(const TableSpec& spec) {
  const auto stored = [](DType dtype) { return static_cast<int64_t>(size_of(dtype)); };
  // bytes per row of an index at half load, plus key and slot of the row
  const int64_t index = spec.direct.empty() ? 24 : 0;
  return spec.dim * stored(spec.storage) + spec.optimizer.states() * spec.state_dim() * stored(spec.stored_states()) +
         index;
}

std::string speeds_text(const MachineSpeeds& speeds) {
  const auto gigabytes = [](double bytes) { return cat(static_cast<int64_t>(bytes / 1e7 + 0.5) / 100.0, " GB/s"); };
  return cat("all-to-all ", gigabytes(speeds.link), ", all-reduce ", gigabytes(speeds.sums), ", rows ",
             gigabytes(speeds.rows));
}

}  // namespace

PlanProblem plan_problem(const Config& config, int64_t ranks, const std::vector<std::vector<SlotKeys>>& keys) {
  PlanProblem problem{.ranks = ranks, .batch = config.solver.batchsize};
  for (const EmbeddingEntry& entry : config.embeddings) {
    const EmbeddingSection& section = entry.section;
    const auto input =
        static_cast<size_t>(std::find_if(config.data.sparse.begin(), config.data.sparse.end(),
                                         [&](const SparseInput& each) { return each.top == section.bottom; }) -
                            config.data.sparse.begin());
    const SparseInput& sparse = config.data.sparse.at(input);
    const bool limited = section.hparam.limited();
    const TableSpec spec = section.table_spec({.optimizer = config.optimizer});
    PlacementRule rule = section.placement_rule();
    if (rule == PlacementRule::hybrid) rule = PlacementRule::automatic;  // hybrid places infrequent keys like automatic
    PlanTable table{.name = section.top(),
                    .rule = limited && !section.identity_by_slot() && rule != PlacementRule::data_parallel
                                ? PlacementRule::distributed
                                : rule,
                    .as_without_plan = limited,
                    .identity_by_slot = section.identity_by_slot(),
                    .may_be_cut = spec.may_be_cut() && !limited && spec.replication.of == Replication::Of::none,
                    .may_be_replicated = !spec.direct.empty() && spec.replication.of != Replication::Of::frequent &&
                                         !spec.policy.counts_keys,
                    .dim = section.dim,
                    .number_bytes = static_cast<int64_t>(
                        size_of(section.hparam.exchange_precision.value_or(config.solver.exchange()))),
                    .row_bytes = row_bytes(spec),
                    .slots = {}};
    for (int64_t s = 0; s < sparse.slot_num; ++s) {
      const auto at = static_cast<size_t>(s);
      const int64_t places = sparse.kept_nnz(s);
      PlanSlot slot{.keys = static_cast<double>(places), .vectors = section.pooled() ? 1 : places};
      if (!keys.empty()) {
        const SlotKeys& sampled = keys[input].at(at);
        slot.keys = sampled.keys;
        slot.distinct = sampled.distinct;
        slot.rows = static_cast<int64_t>(sampled.distinct);
      }
      if (!section.hparam.slot_size_array.empty()) slot.rows = section.hparam.slot_size_array.at(at);
      table.slots.push_back(slot);
    }
    problem.tables.push_back(std::move(table));
  }
  return problem;
}

std::vector<Placement> make_placements(const Config& config, Runtime& runtime, Communicator& comm,
                                       const RunFolder& folder, const Log& log, const Json* saved) {
  if (comm.size() == 1 || config.embeddings.empty()) return {};
  const std::string file = saved ? "the checkpoint" : config.solver.placement_file;
  PlanProblem problem = plan_problem(config, comm.size(), {});
  const bool chooses =
      file.empty() && std::any_of(problem.tables.begin(), problem.tables.end(), [](const PlanTable& table) {
        return !table.as_without_plan &&
               (table.rule == PlacementRule::automatic || table.rule == PlacementRule::localized);
      });
  if (chooses) {
    const MachineSpeeds speeds = measure_speeds(runtime, comm);
    if (comm.rank() == 0) problem = plan_problem(config, comm.size(), sample_keys(config, kSampled));
    problem.speeds = speeds;
  }
  std::string plan;
  if (comm.rank() == 0) {
    const std::vector<Placement> placements =
        file.empty() ? make_plan(problem) : plan_from_json(saved ? *saved : Json::read_file(file), file, problem);
    plan = plan_to_json(problem, placements).text(2);
    log.info(file.empty() ? "Plan of embedding rows"
                          : cat("Plan of embedding rows, from ", saved ? file : cat("'", file, "'")),
             " (", chooses ? "" : "with assumed speeds: ", speeds_text(problem.speeds), "):\n",
             plan_text(problem, placements));
    folder.write_plan(plan);
  }
  return plan_from_json(Json::parse(comm.broadcast(plan, 0), "the plan of rank 0"), "the plan of rank 0", problem);
}

std::vector<Placement> expected_placements(const Config& config, const PlanProblem& problem) {
  const std::string& file = config.solver.placement_file;
  if (file.empty() || !std::filesystem::exists(file)) return make_plan(problem);
  return plan_from_json(Json::read_file(file), file, problem);
}

int64_t memory_for_plan(double gpu_bytes) {
  // The fraction of a GPU's memory for the plan; CUDA and its libraries use the other memory.
  constexpr double kFree = 0.9;
  return static_cast<int64_t>(kFree * gpu_bytes);
}

std::string plan_outlook(const Config& config, double gpu_bytes) {
  const int64_t ranks = config.solver.gpu.count();
  const std::string& file = config.solver.placement_file;
  if (ranks <= 1 || config.embeddings.empty()) return "";
  PlanProblem problem = plan_problem(config, ranks, {});
  problem.speeds.memory = memory_for_plan(gpu_bytes);
  if (!file.empty() && !std::filesystem::exists(file)) return "";
  const std::vector<Placement> placements = expected_placements(config, problem);
  return cat("Plan of embedding rows", file.empty() ? ", made from the config alone" : cat(" of '", file, "'"),
             ", with assumed speeds (", speeds_text(problem.speeds),
             "); training measures the speeds and samples "
             "the data:\n",
             plan_text(problem, placements), "\n");
}

}  // namespace hctr
