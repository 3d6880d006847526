// The JSON Schema of a whole config.
#pragma once

#include <string>

namespace hctr {

/// The text of docs/config.schema.json. Editors use this schema to complete and check configs.
std::string config_schema_text();

}  // namespace hctr
