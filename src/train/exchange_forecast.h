// How long several GPUs of one host should take to exchange vectors, gradients and sums in a step.
#pragma once

#include <cstdint>
#include <vector>

#include "config/sections/config.h"
#include "train/key_sample.h"
#include "train/known_gpus.h"
#include "train/step_forecast.h"

namespace hctr {

/// Seconds of a step, on the rank that sends most.
struct ExchangeForecast {
  int64_t gpus = 1;
  double link_bytes = 0;  ///< a second, that a GPU sends in an all-to-all
  double vectors = 0;     ///< to the ranks that need them, before the layers that read them
  double gradients = 0;   ///< back, concurrently with the dense layers
  double sums = 0;        ///< of gradients of dense weights and replicated rows, likewise
  double in_step = 0;     ///< what the step takes longer than on one GPU

  double all() const { return vectors + gradients + sums; }
};

/// By the cost model of the plan, with the links of the GPU. Gradients and sums cost what they take longer than the
/// backward pass of the dense layers. Keys of the next batch are exchanged concurrently with the step and left out.
/// `step`: of one GPU; `weights`: dense ones; `keys`: as for forecast_step().
ExchangeForecast forecast_exchange(const Config&, int64_t ranks, const KnownGpu&, const StepForecast& step,
                                   int64_t weights, const std::vector<std::vector<SlotKeys>>& keys);

}  // namespace hctr
