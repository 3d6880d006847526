// What a step has to do, by part: bytes and products, counted as a profile counts them, without doing it.
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

/// The dense layers of a training step of `samples` samples, forward, backward and the update of weights. Two small
/// steps run on the CPU; both counts grow linearly with the samples, so the rest is arithmetic. Takes the memory of the
/// weights with their optimizer states. Errors: Error(config) for a config whose layers do not fit.
std::vector<PartWork> work_of_dense_layers(const Config&, int64_t samples);

/// The keys of `samples` samples by sparse input and slot where nothing is known of the data: as many as the config
/// allows, drawn by a power law with the exponent that data_generator has, over the rows of slot_size_array; without it
/// all are different.
std::vector<std::vector<SlotKeys>> assumed_keys(const Config&, int64_t samples);

/// The different keys among `draws` from `rows` of which row i comes with probability in proportion to i^-1.05.
double expected_distinct(double draws, int64_t rows);

/// The spec of each table, for one rank alone with `samples` samples; and what a batch uses of it.
std::vector<TableSpec> specs_on_one_rank(const Config&, int64_t samples);
std::vector<TableUse> uses_of_tables(const Config&, int64_t samples, const std::vector<std::vector<SlotKeys>>&);

}  // namespace hctr
