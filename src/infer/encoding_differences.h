// The encoding of a config: how values of the data become labels, dense values and keys.
#pragma once

#include <string>

#include "config/json.h"
#include "formats/data/slot_key_rules.h"

namespace hctr {

/// Returns the fields that decide what a value becomes and that differ between a saved config and another, each with
/// its path and both values; empty when there is none. Slots and dense columns are compared one by one, in order, so
/// that groups and spelled-out defaults do not matter; nor do fields that only say how a file is written. Csv and
/// Parquet are compared too where both name their columns. Any other change of the format is a difference, and the only
/// one then: keys are made in another way. `rules`: how slots of the saved config that state no "keys" got them; a
/// config that states the same does not differ.
std::string encoding_differences(const Json& saved, const Json& config, const std::vector<SlotKeyRule>& rules = {});

/// Whether that is a difference of formats, or between fields of two formats.
bool is_of_formats(const std::string& differences);
bool is_between_formats(const std::string& differences);

/// The first layer of a config; null where there is none.
const Json* data_layer(const Json& config);
/// The word of a Data layer's format, as JSON; formats that differ in nothing but how files are read are one.
std::string data_format_of(const Json& data);

}  // namespace hctr
