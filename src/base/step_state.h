// The scalars of a step that change from batch to batch.
#pragma once

#include <cstdint>

namespace hctr {

/// Uploaded with each batch; on the device every kernel reads them from there, so a recorded step needs no new
/// arguments.
struct StepState {
  int64_t step = 0;  ///< training steps done before this one, which key random numbers; an evaluation batch carries the
                     ///< steps done before it
  int64_t updates = 0;         ///< updates applied before this one, at most `step`: what optimizers count by
  int64_t first_sample = 0;    ///< index of row 0 in the stream of all samples of all ranks: keys random numbers
  int32_t valid_samples = 0;   ///< rows of this rank that hold a sample; the rest is padding
  int32_t global_samples = 0;  ///< valid samples of all ranks: what losses divide by
  int32_t samples = 0;         ///< rows of this rank, padding included; 0: not said
  float learning_rate = 0;
  float loss_scale = 1;
  int32_t skip = 0;  ///< 1: a gradient of this step overflowed; its update must change nothing
};

}  // namespace hctr
