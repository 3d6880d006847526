// The JSON fields of the `Data` layer, and the rules among them.
#pragma once

#include "data/clause.h"

namespace hctr {

/// Parse with outer key "type".
Schema<DataClause> data_schema();

/// The clause of `/layers/0` of a whole config. Errors go to `problems`; other parts of the config are not looked at.
DataClause data_clause_of(const Json& config, Problems& problems);

}  // namespace hctr
