// The rules of slots whose columns a Data layer names.
#pragma once

#include <vector>

#include "formats/data/column_rules.h"
#include "formats/data/data_section.h"

namespace hctr {

/// The rules of the csv or parquet object, if it has a vocabulary; else none. Errors: those of slot_rules().
std::vector<SlotRule> slot_rules_of(const DataSection&);

}  // namespace hctr
