// The encoding of a config: how it turns values of the data into labels, dense values and keys.
#pragma once

#include <string>

#include "config/json.h"
#include "formats/data/slot_key_rules.h"

namespace hctr {

/// Returns the encoding fields that differ between a saved config and another config, each with its path and both
/// values; empty if there are none. Slots and dense columns are compared one by one, in order, so groups and
/// spelled-out defaults do not matter. Fields about the layout of a file are ignored. Csv and Parquet are comparable if
/// both name their columns. Any other change of format changes the keys, and is then the only difference returned.
/// `rules`: the key rules that were derived for slots of the saved config without "keys"; a config that states the same
/// rules does not differ.
std::string encoding_differences(const Json& saved, const Json& config, const std::vector<SlotKeyRule>& rules = {});

/// Whether the differences are those of formats that are not comparable. `differences`: from encoding_differences().
bool is_of_formats(const std::string& differences);
/// Whether the differences are between fields of Csv and Parquet.
bool is_between_formats(const std::string& differences);

/// The first layer of a config; null if there is none.
const Json* data_layer(const Json& config);
/// The name of a Data layer's format, as JSON text. Formats that differ only in how files are read have the same name.
std::string data_format_of(const Json& data);

}  // namespace hctr
