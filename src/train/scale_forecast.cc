#include "train/scale_forecast.h"

#include <algorithm>
#include <cmath>

#include "net/graph/graph.h"
#include "train/memory_bill.h"
#include "train/placement_plan.h"
#include "train/step_forecast.h"

namespace hctr {
namespace {

// kHiding: fraction of the layers' time, in the backward pass, that overlaps with sending gradients of tables and dense
// weights. kSlowed: slowdown of kernels while links are busy. Both are fitted to steps of two and four H200.
constexpr double kHiding = 0.5, kSlowed = 0.5;
// Seconds per additional host in an exchange.
constexpr double kMessage = 1e-6;
constexpr double kKeyBytes = sizeof(int64_t);

using SlotsOfInputs = std::vector<std::vector<SlotKeys>>;

/// Bytes per step.
struct Traffic {
  // vectors that each GPU sends to other GPUs; the gradients sent back have the same size
  std::vector<double> vectors;
  // vectors that each host sends to other hosts; the gradients sent back have the same size
  std::vector<double> vectors_away;
  double keys = 0, keys_away = 0;  // keys: sent by a GPU; keys_away: sent by a host
  double replicated = 0;           // gradients of rows replicated on every GPU
};

/// Bytes that a host sends to other hosts for a slot whose rows all belong to the other hosts.
struct SentByHost {
  double keys = 0;     // bytes
  double vectors = 0;  // number of vectors; equally many gradient sums are sent back

  /// A host sends either each distinct key once and an index for every occurrence, or the key of every occurrence
  /// (ops/embedding/host_keys.h). Counts the variant with fewer bytes of keys, vectors and gradient sums.
  SentByHost(double different, double all, double bags, double vector_bytes)
      : keys(different * kKeyBytes + all * (different <= 1 << 8    ? 1
                                            : different <= 1 << 16 ? 2
                                                                   : 4)),
        vectors(std::min(different, bags)) {
    if (all * kKeyBytes + 2 * bags * vector_bytes > keys + 2 * vectors * vector_bytes) return;
    keys = all * kKeyBytes;
    vectors = bags;
  }
};

/// The expected number of owners with at least one key of a bag of `keys` keys, among `owners` owners with equal
/// shares.
double owners_with_a_key(double owners, double keys) { return owners * (1 - std::pow(1 - 1 / owners, keys)); }

/// A slot of a table, or a piece of a slot if vectors are split.
struct OwnedSlot {
  const PlanTable& table;
  const PlanSlot& slot;
  double distinct_of_host;  ///< distinct keys in the batch of a host
  int64_t pieces;
  int32_t owner;
};

void add_slot(const OwnedSlot& owned, const Cluster& cluster, double samples, Traffic& traffic) {
  const auto& [table, slot, distinct_of_host, pieces, owner] = owned;
  const auto gpus = static_cast<double>(cluster.all_gpus()), hosts = static_cast<double>(cluster.hosts);
  const double part = 1 / static_cast<double>(pieces);
  if (owner == Placement::kReplicated) {
    traffic.replicated += static_cast<double>(slot.rows * table.dim) * sizeof(float) * part;
    return;
  }
  const double bytes = static_cast<double>(table.dim * table.number_bytes) * part,
               bags = samples * static_cast<double>(slot.vectors), to_others = (gpus - 1) / gpus,
               to_other_hosts = (hosts - 1) / hosts;
  traffic.keys += samples * slot.keys * kKeyBytes * to_others / gpus;
  const bool spread = owner == Placement::kSpread;
  // Each owner sends one partial sum for its keys of a bag.
  const double parts = spread ? owners_with_a_key(gpus, slot.keys / static_cast<double>(slot.vectors)) : 1;
  const SentByHost sent(distinct_of_host, samples * slot.keys / hosts, bags / hosts * parts, bytes);
  traffic.keys_away += sent.keys * to_other_hosts;
  if (!spread) {
    traffic.vectors[static_cast<size_t>(owner)] += bags * bytes * to_others;
    traffic.vectors_away[static_cast<size_t>(owner / cluster.gpus)] += sent.vectors * (hosts - 1) * bytes;
    return;
  }
  for (double& each : traffic.vectors) each += bags * bytes * parts / gpus * to_others;
  for (double& each : traffic.vectors_away) each += sent.vectors * bytes * to_other_hosts;
}

Traffic traffic_of(const PlanProblem& problem, const std::vector<Placement>& placements, const Config& config,
                   const SlotsOfInputs& of_host, const Cluster& cluster) {
  Traffic traffic{.vectors = std::vector<double>(static_cast<size_t>(cluster.all_gpus())),
                  .vectors_away = std::vector<double>(static_cast<size_t>(cluster.hosts))};
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const PlanTable& table = problem.tables[t];
    const Placement& placement = placements[t];
    const auto input = std::find_if(config.data.sparse.begin(), config.data.sparse.end(), [&](const SparseInput& each) {
      return each.top == config.embeddings[t].section.bottom;
    });
    const SlotsOfInputs::value_type& slots = of_host.at(static_cast<size_t>(input - config.data.sparse.begin()));
    for (size_t s = 0; s < table.slots.size(); ++s)
      for (int64_t piece = 0; piece < placement.pieces; ++piece) {
        const size_t at = s * static_cast<size_t>(placement.pieces) + static_cast<size_t>(piece);
        const int32_t owner = placement.replicated_on(problem.ranks) ? Placement::kReplicated
                              : placement.owners.empty()             ? Placement::kSpread
                                                                     : placement.owners[at];
        add_slot({table, table.slots[s], slots.at(s).distinct, placement.pieces, owner}, cluster,
                 static_cast<double>(problem.batch), traffic);
      }
  }
  return traffic;
}

double largest(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

/// Table time of the busiest rank, relative to the mean of all ranks.
double busiest_of(const PlanProblem& problem, const std::vector<Placement>& placements) {
  std::vector<double> of_rank(static_cast<size_t>(problem.ranks));
  double sum = 0;
  for (const RankPlan& part : rank_plans(problem, placements)) {
    of_rank[static_cast<size_t>(part.rank)] += part.seconds;
    sum += part.seconds;
  }
  return sum > 0 ? largest(of_rank) * static_cast<double>(problem.ranks) / sum : 1;
}

/// Measured divided by predicted time on one GPU, interpolated between the measured batch sizes.
double correction(const Config& config, const Ceilings& ceilings, const std::vector<MeasuredStep>& measured,
                  int64_t samples) {
  const auto of = [&](const MeasuredStep& step) {
    return step.seconds / forecast_step(config, step.samples, ceilings, assumed_keys(config, step.samples)).seconds;
  };
  if (measured.empty()) return 1;
  const auto above =
      std::find_if(measured.begin(), measured.end(), [&](const MeasuredStep& step) { return step.samples >= samples; });
  if (above == measured.end()) return of(measured.back());
  if (above == measured.begin() || above->samples == samples) return of(*above);
  const MeasuredStep& below = *(above - 1);
  const double share = std::log(static_cast<double>(samples) / static_cast<double>(below.samples)) /
                       std::log(static_cast<double>(above->samples) / static_cast<double>(below.samples));
  return of(below) * (1 - share) + of(*above) * share;
}

int64_t parameters_of(const Config& config, int64_t samples) {
  Problems problems;
  const Graph graph = wire(config, samples, problems);
  problems.throw_if_any("the config");
  return graph.parameters;
}

void add_exchanges(const Config& config, const Cluster& cluster, const Ceilings& ceilings, double gpu_bytes,
                   ScaleForecast& forecast) {
  const auto gpus = static_cast<double>(cluster.all_gpus()), hosts = static_cast<double>(cluster.hosts),
             of_host = static_cast<double>(cluster.gpus);
  PlanProblem problem = plan_problem(config, cluster.all_gpus(), assumed_keys(config, config.solver.batchsize));
  // Estimates of the speeds that a run would measure for its plan.
  const double link =
      cluster.hosts > 1 ? std::min(cluster.inside.bytes, cluster.between.bytes / of_host) : cluster.inside.bytes;
  problem.speeds = {.link = link,
                    .link_seconds = cluster.inside.seconds + (cluster.hosts > 1 ? cluster.between.seconds : 0),
                    .sums = link / 2,
                    .sums_seconds = cluster.inside.seconds,
                    .rows = ceilings.copy_bytes / 2,
                    .memory = memory_for_plan(gpu_bytes)};
  const std::vector<Placement> placements = make_plan(problem);
  forecast.busiest = busiest_of(problem, placements);
  const int64_t samples_of_host = std::max<int64_t>(1, config.solver.batchsize / cluster.hosts);
  const Traffic traffic = traffic_of(problem, placements, config, assumed_keys(config, samples_of_host), cluster);

  const double away = largest(traffic.vectors_away),
               sums = 4 * static_cast<double>(parameters_of(config, samples_of_host)) + traffic.replicated;
  // Includes gathering outgoing data within the host, and distributing incoming data.
  const double stays = largest(traffic.vectors) * (of_host - 1) / std::max(1.0, gpus - 1) + 2 * away / of_host;
  const bool several = cluster.hosts > 1;
  const double begin = several ? cluster.between.seconds + kMessage * (hosts - 1) : 0;
  forecast.vectors_inside = stays / cluster.inside.bytes + cluster.inside.seconds;
  forecast.keys =
      traffic.keys * (of_host - 1) / std::max(1.0, gpus - 1) / cluster.inside.bytes + cluster.inside.seconds + begin;
  forecast.sums = 2 * (of_host - 1) / of_host * sums / cluster.inside.bytes + 2 * cluster.inside.seconds;
  if (!several) return;
  forecast.vectors_between = away / cluster.between.bytes + begin;
  forecast.keys += traffic.keys_away / cluster.between.bytes;
  forecast.sums += 2 * (hosts - 1) / hosts * sums / cluster.between.bytes +
                   2 * std::ceil(std::log2(hosts)) * cluster.between.seconds;
  forecast.bytes_between = traffic.keys_away + 2 * away + 2 * (hosts - 1) / hosts * sums;
}

double memory_of_fullest(const Config& config, const Cluster& cluster, double gpu_bytes) {
  const MemoryBill bill = memory_bill(config, cluster.all_gpus(), {}, gpu_bytes);
  int64_t most = 0;
  for (size_t gpu = 0; gpu < bill.gpus.size(); ++gpu)
    most = std::max(most, sum_of(bill.gpus[gpu]) + (cluster.hosts > 1 ? bill.between_hosts[gpu] : 0));
  return static_cast<double>(most);
}

}  // namespace

ScaleForecast forecast_scale(const Config& config, const Cluster& cluster, const Ceilings& ceilings, double gpu_bytes,
                             const std::vector<MeasuredStep>& measured) {
  const int64_t gpus = cluster.all_gpus(), all = config.solver.batchsize, mine = (all + gpus - 1) / gpus;
  ScaleForecast forecast{.hosts = cluster.hosts, .gpus = gpus, .samples = all};
  forecast.memory = memory_of_fullest(config, cluster, gpu_bytes);
  if (gpus > 1) add_exchanges(config, cluster, ceilings, gpu_bytes, forecast);
  const StepForecast one = forecast_step(config, mine, ceilings, assumed_keys(config, mine));
  // An owner receives the keys of all samples. Duplicates are more frequent among these keys than among the keys of one
  // GPU's samples.
  const double tables = gpus == 1 ? one.tables
                                  : forecast_step(config, all, ceilings, assumed_keys(config, all)).tables /
                                        static_cast<double>(gpus) * forecast.busiest;
  const double factor = correction(config, ceilings, measured, mine);
  forecast.layers = one.layers * factor;
  forecast.starts = one.starts * factor;
  forecast.tables = tables * factor;

  const double vectors = forecast.vectors_inside + forecast.vectors_between, backward = vectors + forecast.sums,
               hidden = std::min(backward, kHiding * forecast.layers);
  const double shown = backward > 0 ? (backward - hidden + kSlowed * hidden) / backward : 0;
  forecast.seconds = forecast.layers + forecast.tables + forecast.starts + vectors + backward * shown;
  std::vector<std::pair<double, const char*>> parts = {
      {forecast.layers, "dense layers"},
      {forecast.tables, forecast.busiest > 1.5 ? "tables of the busiest GPU" : "tables"},
      {forecast.starts, "starts of kernels"},
      {forecast.vectors_inside * (1 + shown), "vectors inside hosts"},
      {forecast.vectors_between * (1 + shown), "vectors between hosts"},
      {forecast.sums * shown, "all-reduces of dense gradients"}};
  if (forecast.keys > forecast.seconds) {  // the key exchange of the next batch overlaps the step
    forecast.seconds = forecast.keys;
    parts = {{forecast.keys, "keys"}};
  }
  forecast.bound = std::max_element(parts.begin(), parts.end())->second;
  return forecast;
}

}  // namespace hctr
