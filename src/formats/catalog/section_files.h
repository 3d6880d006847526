// All files that a Data layer names for reading.
#pragma once

#include <vector>

#include "core/base/files.h"
#include "formats/data/data_section.h"

namespace hctr {

/// Lists and data files of `source` and `eval_source`, the feature specification with its files, and vocabularies. A
/// source that cannot be listed is skipped: its reader reports why.
std::vector<fs::path> files_of_section(const DataSection&);

}  // namespace hctr
