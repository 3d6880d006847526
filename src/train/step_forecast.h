// How long a training step should take on a GPU: what it has to do, at the rates that the GPU reaches.
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
  double seconds = 0;                         ///< of a step on one GPU; without reading
  double layers = 0, tables = 0, starts = 0;  ///< of these: dense layers and weights, tables, starting kernels
};

/// For `samples` samples on one GPU. A part takes as long as its bytes at the rate of a copy or as its products,
/// whichever is longer, and the start of its kernels. Rows of tables are read and written at random, which is slower
/// than a copy. Looking up the next batch's keys runs concurrently and is left out. Errors: those of
/// work_of_dense_layers().
StepForecast forecast_step(const Config&, int64_t samples, const Ceilings&,
                           const std::vector<std::vector<SlotKeys>>& keys);

}  // namespace hctr
