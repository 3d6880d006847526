#include "train/exchange_forecast.h"

#include <algorithm>
#include <limits>

#include "train/placement_plan.h"

namespace hctr {
namespace {

// Measured on four H200 with NVLink (450 GB/s): DLRM vectors are sent at 311 to 326 GB/s, and all-reduces run at 300
// GB/s. An exchange of a few bytes takes 15 microseconds.
constexpr double kOfLink = 0.7, kOfLinkInSums = 0.67, kExchangeStart = 15e-6;

/// The seconds of the exchanges of `problem` on the busiest rank.
double busiest(const PlanProblem& problem, const std::vector<Placement>& placements) {
  std::vector<double> seconds(static_cast<size_t>(problem.ranks));
  for (const RankPlan& part : rank_plans(problem, placements)) seconds[static_cast<size_t>(part.rank)] += part.seconds;
  return *std::max_element(seconds.begin(), seconds.end());
}

}  // namespace

ExchangeForecast forecast_exchange(const Config& config, int64_t ranks, const KnownGpu& gpu, const StepForecast& step,
                                   int64_t weights, const std::vector<std::vector<SlotKeys>>& keys) {
  ExchangeForecast forecast{.gpus = ranks, .link_bytes = kOfLink * gpu.link_bytes_a_second};
  if (ranks == 1) return forecast;
  PlanProblem problem = plan_problem(config, ranks, keys);
  const std::vector<Placement> placements = expected_placements(config, problem);
  // In an all-reduce of N bytes, each of R ranks sends 2 N (R - 1) / R bytes.
  const double sums =
      kOfLinkInSums * gpu.link_bytes_a_second * static_cast<double>(ranks) / static_cast<double>(2 * (ranks - 1));
  problem.speeds = {.link = forecast.link_bytes,
                    .link_seconds = 0,
                    .sums = sums,
                    .sums_seconds = 0,
                    .rows = std::numeric_limits<double>::infinity()};
  const double all = busiest(problem, placements);
  for (PlanTable& table : problem.tables) table.number_bytes = 0;
  const double without_vectors = busiest(problem, placements);
  problem.speeds.link = std::numeric_limits<double>::infinity();
  const double replicated = busiest(problem, placements);
  int exchanging = 0;
  for (const Placement& placement : placements) exchanging += !placement.replicated_on(ranks);
  forecast.vectors = forecast.gradients = (all - without_vectors) / 2 + exchanging * kExchangeStart;
  forecast.sums = static_cast<double>(weights) * sizeof(float) / sums + kExchangeStart + replicated;
  double concurrent = 0;
  for (const StepForecast::Part& part : step.parts)
    if (part.what.type != "embedding" && part.what.part != "forward" && part.what.part != "update")
      concurrent += part.seconds;
  forecast.in_step = forecast.vectors + std::max(0.0, forecast.gradients + forecast.sums - concurrent);
  return forecast;
}

}  // namespace hctr
