// The schema of the `Data` layer, with checks across its fields.
#pragma once

#include "formats/data/data_section.h"

namespace hctr {

/// The schema of the Data layer. parse() needs "type" in `outer_keys`, because other code reads that key.
Schema<DataSection> data_schema();

/// Parses `/layers/0` of a config and ignores the rest of the config. Errors are added to `problems`.
DataSection data_section_of(const Json& config, Problems& problems);

}  // namespace hctr
