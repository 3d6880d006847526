// The encoding rules of slots with named columns.
#pragma once

#include <vector>

#include "formats/data/column_rules.h"
#include "formats/data/data_section.h"

namespace hctr {

/// The slot rules of the "csv" or "parquet" object; empty if no slot has a vocabulary. Errors: those of slot_rules().
std::vector<SlotRule> slot_rules_of(const DataSection&);

}  // namespace hctr
