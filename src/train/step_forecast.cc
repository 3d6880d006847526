#include "train/step_forecast.h"

#include <algorithm>

namespace hctr {
namespace {

// kStart: seconds to start a part. kReached: average ratio of a part's time at peak rates to its measured time. The
// time at peak rates is the larger of copy time and GEMM time. Both constants are fitted to 48 steps on an H100 (four
// models, three precisions, 512 to 65,536 samples), which they predict within 25 %. A start takes longer than an empty
// kernel (2.5 microseconds), because a small GEMM still loops over its inner dimension, and some parts have several
// kernels.
constexpr double kStart = 4.2e-6, kReached = 0.75;

// Reading random rows of 64 to 512 bytes takes as long as copying rows that are kMoreBytesOfRow bytes longer. If no row
// is cached, that copy runs at half the copy rate. But many rows are still cached from the previous batch, so on
// average the copy runs at kRandom times the copy rate.
constexpr double kMoreBytesOfRow = 57, kRandom = 0.87;

double bytes_at_random(double rows, double bytes_of_row) { return rows * (bytes_of_row + kMoreBytesOfRow) / kRandom; }

/// The bytes of a copy that takes as long as the forward pass of a table. Rows that occur repeatedly in a batch are
/// read from the cache.
double forward_bytes(const TableSpec& spec, const TableUse& use, double number_bytes) {
  return bytes_of_table("forward", spec, {use.keys - use.rows, 0}, number_bytes) +
         bytes_at_random(use.rows, vector_bytes_of_row(spec));
}

double update_bytes(const TableSpec& spec, const TableUse& use, double number_bytes) {
  const bool all_rows = spec.update == UpdateType::global && !spec.optimizer.zero_gradient_is_noop();
  const double row = vector_bytes_of_row(spec) + state_bytes_of_row(spec);
  return bytes_of_table("update", spec, {}, number_bytes) + 2 * bytes_at_random(use.rows, row) +
         (all_rows ? 2 * row * std::max(0.0, static_cast<double>(spec.row_hint) - use.rows) : 0);
}

}  // namespace

StepForecast forecast_step(const Config& config, int64_t samples, const Ceilings& ceilings,
                           const std::vector<std::vector<SlotKeys>>& keys) {
  StepForecast forecast;
  const auto add = [&](PartWork work, double bytes, double& sum) {
    if (bytes <= 0 && work.work.flops <= 0) return;  // the layer does nothing: its outputs share memory with its inputs
    const double seconds = std::max(bytes / ceilings.copy_bytes, work.work.flops / ceilings.product_flops) / kReached;
    sum += seconds;
    forecast.starts += kStart;
    forecast.parts.push_back({std::move(work), seconds + kStart});
  };
  for (PartWork& part : work_of_dense_layers(config, samples)) {
    const double bytes = part.work.bytes;
    add(std::move(part), bytes, forecast.layers);
  }
  const std::vector<TableSpec> specs = specs_on_one_rank(config, samples);
  const std::vector<TableUse> uses = uses_of_tables(config, samples, keys);
  const auto number_bytes = static_cast<double>(size_of(config.solver.mixed_precision.activations));
  for (size_t t = 0; t < specs.size(); ++t)
    for (const char* part : {"forward", "update"}) {
      const bool forward = part == std::string_view("forward");
      if (!forward && config.embeddings[t].section.frozen) continue;
      const double bytes =
          forward ? forward_bytes(specs[t], uses[t], number_bytes) : update_bytes(specs[t], uses[t], number_bytes);
      add({part,
           "embedding",
           specs[t].name,
           {.flops = 0, .bytes = bytes_of_table(part, specs[t], uses[t], number_bytes)}},
          bytes, forecast.tables);
    }
  forecast.seconds = forecast.layers + forecast.tables + forecast.starts;
  return forecast;
}

}  // namespace hctr
