// The Csv options of a data section, for tests that change them.
#pragma once

#include "formats/data/data_section.h"
#include "formats/text/csv_set.h"

namespace hctr::data_test {

inline CsvOptions& csv_of(DataSection& section) { return section.options.edit<CsvOptions>(); }

}  // namespace hctr::data_test
