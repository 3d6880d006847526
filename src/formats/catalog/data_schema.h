// The JSON fields of the `Data` layer, and the rules among them.
#pragma once

#include "formats/data/data_section.h"

namespace hctr {

/// parse() needs {"type"} as outer keys: the layer's reader has read that key.
Schema<DataSection> data_schema();

/// The section of `/layers/0` of a whole config. Errors go to `problems`; other parts of the config are not looked at.
DataSection data_section_of(const Json& config, Problems& problems);

}  // namespace hctr
