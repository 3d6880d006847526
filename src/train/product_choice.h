// "algorithm_search": which algorithm computes each matrix product of a run.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/device/context.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Collective, after the programs of a step have been recorded once, so that their products are known. Rank 0 reads the
/// algorithms of `file`, or of a file in the user's cache if empty (train/product_file.h), measures products that it
/// does not have and adds them to it; all ranks use them. `from_checkpoint`: product_text() of the run that goes on,
/// which comes before the file; may be empty. A file or text of no use is warned of. Returns product_text() of all that
/// are known, those of other models in the file too; empty on the CPU, where nothing is done. What was recorded must be
/// recorded again. Errors: those of rank 0's search, on all ranks.
std::string choose_product_algorithms(Runtime&, Communicator&, const std::filesystem::path& file,
                                      const std::string& from_checkpoint, const Environment&, const Log&);

}  // namespace hctr
