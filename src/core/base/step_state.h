// The scalars of a step that change with every batch.
#pragma once

#include <cstdint>

namespace hctr {

/// Uploaded with every batch. Kernels read them from device memory, so a recorded step needs no new arguments.
struct StepState {
  int64_t step = 0;            ///< training steps before this one, or before this evaluation batch: keys random numbers
  int64_t updates = 0;         ///< updates applied before this one, without skipped steps: the count of optimizers
  int64_t updates_before = 0;  ///< of these, updates before step 0, in the run that saved the optimizer's states
  int64_t first_sample = 0;    ///< index of row 0 among all samples so far, of all ranks: keys random numbers
  int32_t valid_samples = 0;   ///< rows of this rank that hold a sample; the others are padding
  int32_t global_samples = 0;  ///< valid samples of all ranks: the divisor of losses
  int32_t samples = 0;         ///< rows of this rank, padding included; 0: not set
  float learning_rate = 0;
  float loss_scale = 1;
  float log_negative_share = 0;  ///< log of the kept share, if negatives are sampled
  int32_t skip = 0;              ///< 1: a gradient of this step overflowed, and its update must change nothing
  int32_t* spoiled = nullptr;    ///< on the device, of all steps: set to 1 by an update that makes a weight or a row
                                 ///< infinite or not a number; null: not reported

  bool operator==(const StepState&) const = default;
};

}  // namespace hctr
