// Text with any columns, as the "csv" clause describes them.
#pragma once

#include <memory>

#include "data/text/text_set.h"

namespace hctr {

void check_csv_clause(const DataClause&, const std::string& pointer, Problems&);

/// What the clause makes of a text. Reads vocabularies. Errors: Error(io), Error(data) for those.
TextFormat csv_format(const DataClause&);

std::unique_ptr<SampleSet> open_csv_set(const DataClause&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
