// Exchanges keys one batch ahead, on a separate stream.
#include <algorithm>

#include "net/plan/step_choices.h"

namespace hctr {
namespace {

/// Applies if neither the exchange of keys nor the look-up of the previous batch waits for the host.
bool take_keys_ahead(const StepFacts& facts, StepChoices& choices) {
  return choices.keys_ahead = facts.recorded_whole && std::ranges::all_of(facts.tables, [&](const TableFacts& table) {
                                return (facts.alone() || table.exchanges_by_kernels) && !table.on_disk;
                              });
}

}  // namespace

const StepRule kKeysAhead = {
    .name = "keys a batch ahead",
    .reason =
        "Upload and key exchange of a batch end before the look-up of the batch can begin, so the look-up is "
        "not delayed.",
    .gain =
        "two H100, half precision at 16,384, with merged kernels: Wide & Deep 0.772 to 0.653 ms, DLRM 1.341 to 1.297",
    .decide = take_keys_ahead};

}  // namespace hctr
