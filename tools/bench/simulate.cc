#include "simulate.h"

#include <algorithm>

#include "infer/load_config.h"
#include "program/program_surroundings.h"
#include "program/terminal.h"
#include "train/known_gpus.h"
#include "train/scale_forecast.h"

namespace hctr::bench {
namespace {

struct SimulatedGpu {
  std::string name;
  double bytes = 0;
  hctr::Ceilings ceilings;
};

SimulatedGpu gpu_of(Device device, const std::string& name, const Config& config) {
  const DType products = config.solver.mixed_precision.activations;
  const bool tf32 = config.solver.enable_tf32_compute;
  if (name.empty() && device.is_cuda()) {
    Runtime runtime(device, {.tf32 = tf32});
    return {describe(device), static_cast<double>(free_memory(device) + used_memory(device)),
            measure_ceilings(runtime, products)};
  }
  const auto known = find_known_gpu(name.empty() ? "H100" : name);
  if (!known) {
    std::string names;
    for (const std::string& each : gpu_names()) names += (names.empty() ? "" : ", ") + each;
    throw Error(Kind::usage, cat("--gpu-name ", name, ": not a known GPU; known are ", names));
  }
  return {std::string(known->name), known->memory_gib * (1 << 30), expected_ceilings(*known, products, tf32)};
}

/// The numbers 1, 2, 4, ... and `most`.
std::vector<int64_t> doubled_to(int64_t most) {
  std::vector<int64_t> values;
  for (int64_t value = 1; value < most; value *= 2) values.push_back(value);
  values.push_back(most);
  return values;
}

}  // namespace

void simulate_scale(Device device, const SimulateCase& wanted, Report& report) {
  Config config = load_config(wanted.config, false, log_to_stderr(), {.environment = system_environment()});
  const Cluster whole = cluster_from(wanted.cluster);
  const int64_t batch = wanted.batch > 0 ? wanted.batch : config.solver.batchsize;
  const SimulatedGpu gpu = gpu_of(device, wanted.gpu, config);
  std::vector<MeasuredStep> measured;
  for (const std::string& text : wanted.measured) measured.push_back(measured_step_from(text));
  std::sort(measured.begin(), measured.end(), [](const auto& a, const auto& b) { return a.samples < b.samples; });

  std::vector<Cluster> clusters;
  for (const int64_t gpus : doubled_to(whole.gpus))
    clusters.push_back({.hosts = 1, .gpus = gpus, .inside = whole.inside});
  for (const int64_t hosts : doubled_to(whole.hosts))
    if (hosts > 1) clusters.push_back(whole), clusters.back().hosts = hosts;

  print_formatted(
      "Expected steps on GPUs like %s with %.0f GiB. GiB: memory of the fullest GPU; MB: data sent by a host per step; "
      "other columns in ms per step.\n%s",
      gpu.name.c_str(), gpu.bytes / (1 << 30),
      "  GPUs hosts   samples     GiB  layers  tables  vectors: inside between    sums    keys        MB      step   "
      "M samples/s  of ideal  bound by\n");
  double first = 0;
  for (const Cluster& cluster : clusters) {
    const int64_t gpus = cluster.all_gpus();
    config.solver.batchsize = wanted.strong ? batch : batch * gpus;
    const ScaleForecast step = forecast_scale(config, cluster, gpu.ceilings, gpu.bytes, measured);
    const double speed = static_cast<double>(step.samples) / step.seconds;
    if (first == 0) first = speed;
    const double ideal = 100 * speed / (first * static_cast<double>(gpus));
    print_formatted("%6lld %5lld %9lld %7.1f %7.3f %7.3f %16.3f %7.3f %7.3f %7.3f %9.1f %9.3f %13.2f %7.0f %%  %s%s\n",
                    static_cast<long long>(gpus), static_cast<long long>(step.hosts),
                    static_cast<long long>((step.samples + gpus - 1) / gpus), step.memory / (1 << 30),
                    (step.layers + step.starts) * 1e3, step.tables * 1e3, step.vectors_inside * 1e3,
                    step.vectors_between * 1e3, step.sums * 1e3, step.keys * 1e3, step.bytes_between / 1e6,
                    step.seconds * 1e3, speed / 1e6, ideal, step.bound.c_str(),
                    step.memory > gpu.bytes ? "; does not fit" : "");
    flush_output();
    const std::string where = cat(gpus, " GPUs, ", step.hosts, step.hosts == 1 ? " host" : " hosts");
    report.record("expected step", where, step.seconds * 1e3, "ms");
    report.record("expected samples", where, speed / 1e6, "M/s");
    report.record("expected of ideal", where, ideal, "%");
    report.record("memory of the fullest GPU", where, step.memory / (1 << 30), "GiB");
    report.record("bytes that leave a host", where, step.bytes_between, "B");
  }
}

}  // namespace hctr::bench
