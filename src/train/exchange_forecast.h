// Predicts the time per step that several GPUs of one host need to exchange vectors and gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "config/sections/config.h"
#include "train/key_sample.h"
#include "train/known_gpus.h"
#include "train/step_forecast.h"

namespace hctr {

/// Seconds per step on the rank that sends most.
struct ExchangeForecast {
  int64_t gpus = 1;
  double link_bytes = 0;  ///< bytes per second that a GPU sends during an all-to-all
  double vectors = 0;     ///< sending vectors to their consumer ranks, before the layers that read them
  double gradients = 0;   ///< sending gradients to their owner ranks, concurrently with the dense layers
  double sums = 0;        ///< all-reduces of wgrads and replicated rows, concurrently with the dense layers
  double in_step = 0;     ///< additional seconds per step compared with one GPU

  double all() const { return vectors + gradients + sums; }
};

/// Uses the plan's cost model with the GPU's links. Gradients and all-reduces overlap the backward pass of the dense
/// layers; only the time that exceeds the backward pass is added. The key exchange of the next batch overlaps the step
/// and adds no time. `step`: forecast for one GPU; `weights`: number of dense weights; `keys`: as for forecast_step().
ExchangeForecast forecast_exchange(const Config&, int64_t ranks, const KnownGpu&, const StepForecast& step,
                                   int64_t weights, const std::vector<std::vector<SlotKeys>>& keys);

}  // namespace hctr
