// "algorithm_search": chooses the algorithm of each GEMM of a run.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/device/context.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Collective. Call after the programs of a step have been recorded once, so that their GEMMs are known. Rank 0 reads
/// the algorithms of `file`, or of a file in the user's cache if `file` is empty (train/product_file.h). Then rank 0
/// measures GEMMs that the file lacks and adds the results to the file. All ranks use the algorithms.
/// `from_checkpoint`: product_text() of a resumed run, or empty; takes precedence over the file. An unusable file or
/// text only logs a warning. Returns product_text() of all known GEMMs, including GEMMs of other models in the file. On
/// the CPU, does nothing and returns an empty text. The caller must record the programs again. Errors: those of rank
/// 0's search, on all ranks.
std::string choose_product_algorithms(Runtime&, Communicator&, const std::filesystem::path& file,
                                      const std::string& from_checkpoint, const Environment&, const Log&);

}  // namespace hctr
