// JSON Schema (draft 2020-12) from the declarations of fields, for editors.
#pragma once

#include <vector>

#include "config/json.h"
#include "config/schema.h"

namespace hctr {

/// The JSON Schema of an object with these fields: types, ranges, words, defaults and descriptions. The program accepts
/// one thing more: a scalar written as an array of one, as HugeCTR does.
Json json_schema_of(const std::vector<FieldDoc>&);
/// The same with the keys that are accepted without effect; in a closed schema other keys are not allowed.
Json json_schema_of(const SchemaBase&);

}  // namespace hctr
