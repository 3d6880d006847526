// What --check found, as text for people and as JSON.
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
  std::string config, layers, plan;  ///< the name of the file; the layer table; the plan, empty on one GPU
  int64_t samples = 0;               ///< of a step on one GPU
  size_t processes = 1;              ///< of the lists of "gpu"
  MemoryBill memory;
  std::optional<double> gpu_bytes;  ///< that each GPU has, if it is known
  std::string gpu;                  ///< its name, if it is known
  bool measured = false;            ///< whether the rates were measured on it, not taken from a table
  bool keys_counted = false;        ///< whether keys are those of the data
  Ceilings ceilings;
  std::optional<StepForecast> step;
  std::optional<ExchangeForecast> exchange;  ///< of several GPUs, if their links are known

  /// Seconds of a step, with the exchange where it is known.
  double step_seconds() const { return step->seconds + (exchange ? exchange->in_step : 0); }
  std::vector<std::string> unwritable;  ///< a sentence for each folder that a run could not write to

  /// Whether every GPU has the memory; none where it is not known.
  std::optional<bool> fits() const;
};

/// A sentence for each budget of rows that has no room for all that the config states, with what would do: on a GPU of
/// so many bytes, or on the CPU.
std::vector<std::string> budgets_too_small(const MemoryBill&, const std::optional<double>& gpu_bytes);

std::string text_of(const CheckReport&);
Json to_json(const CheckReport&);

}  // namespace hctr
