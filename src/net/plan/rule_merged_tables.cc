// Kernels of one kind of several tables are launched as one (core/device/lockstep.h).
#include <algorithm>

#include "net/plan/step_choices.h"

namespace hctr {
namespace {

/// On several ranks the tables must make the same calls, since these wait for other ranks, and the host must not take
/// part.
bool all_merge(const StepFacts& facts) {
  return facts.alone() || std::ranges::all_of(facts.tables, &TableFacts::exchanges_by_kernels);
}

}  // namespace

const StepRule kMergedTables = {
    .name = "tables' kernels merged",
    .reason =
        "Kernels of a single table have few blocks, and each launch costs microseconds in which the GPU "
        "idles.",
    .gain = "two H100, Wide & Deep: 27 kernels and copies prepare a batch instead of 49 (2026-11-26)",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.tables_merged = all_merge(facts) && !facts.tables.empty();
    }};

}  // namespace hctr
