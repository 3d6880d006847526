// Predicts the time that several GPUs of one host need per step to exchange vectors, gradients and sums.
#pragma once

#include <cstdint>
#include <vector>

#include "config/sections/config.h"
#include "train/key_sample.h"
#include "train/known_gpus.h"
#include "train/step_forecast.h"

namespace hctr {

/// Seconds per step, on the rank that sends most.
struct ExchangeForecast {
  int64_t gpus = 1;
  double link_bytes = 0;  ///< bytes per second that a GPU sends in an all-to-all
  double vectors = 0;     ///< vectors to their readers, before the layers that read them
  double gradients = 0;   ///< gradients back, concurrently with the dense layers
  double sums = 0;        ///< all-reduces of wgrads and replicated rows, likewise
  double in_step = 0;     ///< extra time per step compared with one GPU

  double all() const { return vectors + gradients + sums; }
};

/// Uses the plan's cost model with the links of the GPU. Gradients and sums cost only the time by which they exceed the
/// backward pass of the dense layers. The key exchange of the next batch overlaps the step and is not counted. `step`:
/// on one GPU; `weights`: number of dense weights; `keys`: as for forecast_step().
ExchangeForecast forecast_exchange(const Config&, int64_t ranks, const KnownGpu&, const StepForecast& step,
                                   int64_t weights, const std::vector<std::vector<SlotKeys>>& keys);

}  // namespace hctr
