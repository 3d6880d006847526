// Lists all files that a Data layer reads.
#pragma once

#include <vector>

#include "core/base/files.h"
#include "formats/data/data_section.h"

namespace hctr {

/// The list files and data files of `source` and `eval_source`, the feature specification and its files, and all
/// vocabularies. Skips a source that cannot be listed; its reader reports the error.
std::vector<fs::path> files_of_section(const DataSection&);

}  // namespace hctr
