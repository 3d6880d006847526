// The results of --check, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "train/exchange_forecast.h"
#include "train/memory_bill.h"
#include "train/step_forecast.h"

namespace hctr {

struct CheckReport {
  /// config: name of the config file; layers: the layer table; plan: the placement plan, empty on one GPU
  std::string config, layers, plan;
  int64_t samples = 0;   ///< samples of a step on one GPU
  size_t processes = 1;  ///< number of processes, from the lists of "gpu"
  MemoryBill memory;
  std::optional<double> gpu_bytes;     ///< memory of each GPU, if known
  std::optional<int64_t> enough_gpus;  ///< if memory is too small: a number of GPUs whose memory suffices, if known
  std::string gpu;                     ///< name of the GPU, if known
  /// whether the rates were measured on the GPU; otherwise they come from the table of known GPUs
  bool measured = false;
  bool keys_counted = false;  ///< whether key counts were sampled from the data
  Ceilings ceilings;
  std::optional<StepForecast> step;
  std::optional<ExchangeForecast> exchange;  ///< set for several GPUs whose links are known

  /// Seconds per step, including the exchange if known.
  double step_seconds() const { return step->seconds + (exchange ? exchange->in_step : 0); }
  std::vector<std::string> unwritable;  ///< a message for each folder that the run cannot write to

  /// Whether the memory of every GPU is sufficient; none if unknown.
  std::optional<bool> fits() const;
};

/// A message for each budget that cannot hold all rows that the config states. The message suggests a GPU with enough
/// memory, or the CPU.
std::vector<std::string> budgets_too_small(const MemoryBill&, const std::optional<double>& gpu_bytes);

std::string text_of(const CheckReport&);
Json to_json(const CheckReport&);

}  // namespace hctr
