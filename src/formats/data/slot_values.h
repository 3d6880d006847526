// Iterates over the values in a cell of a slot.
#pragma once

#include <algorithm>
#include <string_view>

#include "formats/data/bracketed_list.h"
#include "formats/data/column_rules.h"

namespace hctr {

/// Calls visit(value) for each non-empty value in the cell. Stops and returns false if visit returns false. Also
/// returns false, and sets `problem`, if the rule expects a list in brackets and the cell has none.
template <class Visit>
bool for_each_slot_value(const SlotRule& rule, std::string_view cell, const char*& problem, Visit&& visit) {
  if (!rule.brackets) return for_each_value(cell, rule.separator, visit);
  thread_local BracketedList list;
  const bool read = list.read(cell, rule.separator);
  problem = list.problem();
  return read && std::all_of(list.values().begin(), list.values().end(), visit);
}

}  // namespace hctr
