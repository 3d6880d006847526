// Text with any columns, as the "csv" section describes them.
#pragma once

#include <memory>

#include "data/text/text_set.h"

namespace hctr {

void check_csv_section(const DataSection&, const std::string& pointer, Problems&);

/// What the section makes of a text. Reads vocabularies. Errors: Error(io), Error(data) for those.
TextFormat csv_format(const DataSection&);

std::unique_ptr<SampleSet> open_csv_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
