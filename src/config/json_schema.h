// Generates a JSON Schema (draft 2020-12) for editors from field declarations.
#pragma once

#include <vector>

#include "config/json.h"
#include "config/schema.h"

namespace hctr {

/// The JSON Schema of an object with these fields: types, ranges, words, defaults and descriptions. The program is more
/// lenient than the schema: like HugeCTR, it also accepts a scalar that is wrapped in an array of one element.
Json json_schema_of(const std::vector<FieldDoc>&);
/// The JSON Schema of an object with the schema's fields and its ignored keys. A closed schema rejects all other keys.
Json json_schema_of(const SchemaBase&);

}  // namespace hctr
