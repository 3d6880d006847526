// The encoding of a config: how values of the data become labels, dense values and keys.
#pragma once

#include <string>

#include "config/json.h"
#include "data/slot_key_rules.h"

namespace hctr {

/// Returns the fields that decide what a value becomes and that differ between a saved config and another, each with
/// its path and both values; empty when there is none. Slots and dense columns are compared one by one, in order, so
/// that groups and spelled-out defaults do not matter; nor do fields that only say how a file is written. Sections of
/// another format than the saved one are not compared. `rules`: how slots of the saved config that state no "keys" got
/// them; a config that states the same does not differ.
std::string encoding_differences(const Json& saved, const Json& config, const std::vector<SlotKeyRule>& rules = {});

/// Returns the config with the encoding of a saved one. What says how a file is written stays as it is.
Json with_encoding_of(const Json& saved, const Json& config);

}  // namespace hctr
