// huge_ctr check for a store.json or ps.json.
#pragma once

#include <string>

#include "config/json.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Whether a JSON file is a store's config rather than a training config.
bool is_store_config(const Json&);

/// Prints the memory that each table and level will need, without loading any table. Errors: Error(config) with every
/// problem, including too little free memory; those of finding and reading the tables' files.
void check_store(const std::string& file, bool as_json, const Surroundings&);

}  // namespace hctr
