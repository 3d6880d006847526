// Counts the work of a step by part, in bytes and FLOP as a profile counts them, without running it.
#pragma once

#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/device/profiler.h"
#include "engine/spec/table_spec.h"
#include "train/key_sample.h"
#include "train/table_work.h"

namespace hctr {

struct PartWork {
  std::string part, type, name;
  Work work;
};

/// The dense layers of a training step of `samples` samples: forward, backward and weight update. Runs two small steps
/// on the CPU; both counts grow linearly with the samples, so the rest is extrapolated. Allocates the weights with
/// their optimizer states. Errors: Error(config) for a config whose layers do not fit.
std::vector<PartWork> work_of_dense_layers(const Config&, int64_t samples);

/// Assumed keys of `samples` samples, by sparse input and slot, if nothing is known of the data: as many as the config
/// allows, drawn over the rows of slot_size_array by the power law of data_generator; without slot_size_array all keys
/// are distinct.
std::vector<std::vector<SlotKeys>> assumed_keys(const Config&, int64_t samples);

/// The expected number of distinct keys among `draws` draws from `rows` rows, where row i has probability proportional
/// to i^-1.05.
double expected_distinct(double draws, int64_t rows);

/// The spec of each table for a single rank with `samples` samples, and its use by one batch.
std::vector<TableSpec> specs_on_one_rank(const Config&, int64_t samples);
std::vector<TableUse> uses_of_tables(const Config&, int64_t samples, const std::vector<std::vector<SlotKeys>>&);

}  // namespace hctr
