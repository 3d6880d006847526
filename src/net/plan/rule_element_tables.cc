// Moves tables whose vector size is not a multiple of four to a separate stream.
#include "net/plan/step_choices.h"

namespace hctr {
namespace {

/// Whether a table may run on the elements stream. With several ranks this requires that kernels write directly to
/// other ranks' memory, and that the table needs neither an all-reduce of replicated rows nor the host.
bool may_be_apart(const StepFacts& facts, const StepChoices& choices, const TableFacts& table) {
  return table.by_element && (facts.alone() || (choices.tables_merged && !table.on_disk && !table.replicated_rows));
}

bool move_element_tables(const StepFacts& facts, StepChoices& choices) {
  for (size_t e = 0; e < facts.tables.size(); ++e)
    if (may_be_apart(facts, choices, facts.tables[e])) choices.element_tables.push_back(e);
  // if every table qualifies, no separate stream is needed
  if (choices.element_tables.size() == facts.tables.size()) choices.element_tables.clear();
  return !choices.element_tables.empty();
}

}  // namespace

const StepRule kElementTables = {.name = "kernels of tables that are read one element at a time have their own stream",
                                 .reason =
                                     "Kernels with one element per access differ from kernels with four, so their "
                                     "launches cannot be merged and would run sequentially.",
                                 .gain = "two H200, Wide & Deep, half precision at 16,384: 0.578 to 0.557 ms",
                                 .decide = move_element_tables};

}  // namespace hctr
