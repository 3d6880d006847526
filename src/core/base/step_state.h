// The scalars of a step that change with every batch.
#pragma once

#include <cstdint>

namespace hctr {

/// The host uploads a StepState with every batch. Kernels read these scalars from device memory, so a recorded step
/// needs no new arguments.
struct StepState {
  /// number of training steps before this step or evaluation batch; also a counter for random numbers
  int64_t step = 0;
  int64_t updates = 0;  ///< updates applied before this step, without skipped steps; the optimizers' step count
  /// the part of `updates` applied before step 0, by the run that saved the optimizer states
  int64_t updates_before = 0;
  /// index of this rank's row 0 among the samples of all ranks and all steps so far; also a counter for random numbers
  int64_t first_sample = 0;
  int32_t valid_samples = 0;   ///< rows of this rank's batch that hold a sample; the remaining rows are padding
  int32_t global_samples = 0;  ///< valid samples of all ranks; losses are divided by this
  int32_t samples = 0;         ///< rows of this rank's batch, including padding; 0: not set
  float learning_rate = 0;
  float loss_scale = 1;
  float log_negative_share = 0;  ///< log of the fraction of the negative samples that sampling has kept
  int32_t skip = 0;              ///< 1: a gradient of this step overflowed, and the update must change nothing
  /// Device flag shared by all steps. An update sets the flag to 1 if a weight or a row becomes infinite or NaN. Null:
  /// not reported.
  int32_t* spoiled = nullptr;

  bool operator==(const StepState&) const = default;
};

}  // namespace hctr
