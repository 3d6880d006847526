// "algorithm_search": chooses the algorithm of each GEMM of a run.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/device/context.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Collective. Call it after the programs of a step have been recorded once, so that their GEMMs are known. Rank 0
/// reads the algorithms of `file`, or of a file in the user's cache if empty (train/product_file.h), measures GEMMs
/// that the file lacks and adds them to it; all ranks use them. `from_checkpoint`: product_text() of a resumed run,
/// which takes precedence over the file; may be empty. An unusable file or text is a warning. Returns product_text() of
/// all known GEMMs, including those of other models in the file; empty on the CPU, where nothing is done. Recorded
/// programs must be recorded again. Errors: those of rank 0's search, on all ranks.
std::string choose_product_algorithms(Runtime&, Communicator&, const std::filesystem::path& file,
                                      const std::string& from_checkpoint, const Environment&, const Log&);

}  // namespace hctr
