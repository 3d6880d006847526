// The encoding of a config: how it turns values of the data into labels, dense values and keys.
#pragma once

#include <string>

#include "config/json.h"
#include "formats/data/slot_key_rules.h"

namespace hctr {

/// Returns the encoding fields that differ between a saved config and another one, each with its path and both values;
/// empty when there is none. Compares slots and dense columns one by one, in order, so that groups and spelled-out
/// defaults do not matter; ignores fields that only say how a file is written. Csv and Parquet are comparable if both
/// name their columns. Any other change of format makes keys in another way, and is then the only difference returned.
/// `rules`: how slots of the saved config without "keys" got theirs; a config that states the same does not differ.
std::string encoding_differences(const Json& saved, const Json& config, const std::vector<SlotKeyRule>& rules = {});

/// Whether these are differences of formats, or between fields of two formats.
bool is_of_formats(const std::string& differences);
bool is_between_formats(const std::string& differences);

/// The first layer of a config; null if there is none.
const Json* data_layer(const Json& config);
/// The name of a Data layer's format, as JSON; formats that differ only in how files are read count as one.
std::string data_format_of(const Json& data);

}  // namespace hctr
