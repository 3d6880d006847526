// If several tables need the same kernel, runs it for all of them in one launch (core/device/lockstep.h).
#include <algorithm>

#include "net/plan/step_choices.h"

namespace hctr {
namespace {

/// With several ranks, a call of a table waits for the same call on other ranks. Merged tables must therefore all make
/// the same calls, and no call may need the host.
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
