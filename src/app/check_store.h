// huge_ctr check of a store.json or ps.json.
#pragma once

#include <string>

#include "config/json.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Whether a file is one of a store, not a config of training.
bool is_store_config(const Json&);

/// Prints what the tables will take, by table and level, without loading any. Errors: Error(config) with every problem,
/// also where the memory that is free does not suffice; those of finding and reading the tables' files.
void check_store(const std::string& file, bool as_json, const Surroundings&);

}  // namespace hctr
