// Predicts the time of a training step on a GPU from the step's work and the GPU's rates.
#pragma once

#include <string>
#include <vector>

#include "train/machine_ceilings.h"
#include "train/step_work.h"

namespace hctr {

struct StepForecast {
  struct Part {
    PartWork what;
    double seconds = 0;
  };
  std::vector<Part> parts;
  double seconds = 0;                         ///< time of a step on one GPU, without the time to read data
  double layers = 0, tables = 0, starts = 0;  ///< parts of `seconds`: dense layers and weights, tables, kernel starts
};

/// Predicts a step of `samples` samples on one GPU. The time of a part is its kernel start plus the larger of copy time
/// and GEMM time. Table rows are accessed at random, which is slower than a copy. The look-up of the next batch runs
/// concurrently and adds no time. Errors: those of work_of_dense_layers().
StepForecast forecast_step(const Config&, int64_t samples, const Ceilings&,
                           const std::vector<std::vector<SlotKeys>>& keys);

}  // namespace hctr
