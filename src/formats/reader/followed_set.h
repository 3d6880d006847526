// A set whose files arrive while it is read: each is a set of its own, in any format.
#pragma once

#include <memory>

#include "formats/data/format_type.h"
#include "formats/reader/file_feed.h"

namespace hctr {

/// Its files are opened when they are read, and forgotten after. How many samples it has is not known. `width`: as the
/// formats take it. The feed outlives it. `from`: the file that is read first.
/// Errors, when a file is opened: those of the format, naming the file.
std::unique_ptr<SampleSet> follow_files(const DataSection&, const Source&, KeyWidth width, const Log&,
                                        std::shared_ptr<FileFeed>, size_t from);

}  // namespace hctr
