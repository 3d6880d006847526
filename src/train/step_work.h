// Counts the work of each part of a step in bytes and FLOP, as a profile does, but without running the step.
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

/// The work of the dense layers in a training step of `samples` samples: forward, backward and weight update. Runs two
/// small steps on the CPU and extrapolates, because bytes and FLOP grow linearly with the samples. Allocates the
/// weights and optimizer states. Errors: Error(config) if the config's layers do not fit together.
std::vector<PartWork> work_of_dense_layers(const Config&, int64_t samples);

/// The keys that are assumed for `samples` samples of unknown data, by sparse input and slot. The number of keys is the
/// maximum that the config permits. Keys are drawn over the rows of slot_size_array by the power law of data_generator;
/// without slot_size_array, all keys are distinct.
std::vector<std::vector<SlotKeys>> assumed_keys(const Config&, int64_t samples);

/// The expected number of distinct keys among `draws` draws from `rows` rows. Row i has a probability proportional to
/// i^-1.05.
double expected_distinct(double draws, int64_t rows);

/// The spec of each table on a single rank with `samples` samples, and the table's use by one batch.
std::vector<TableSpec> specs_on_one_rank(const Config&, int64_t samples);
std::vector<TableUse> uses_of_tables(const Config&, int64_t samples, const std::vector<std::vector<SlotKeys>>&);

}  // namespace hctr
