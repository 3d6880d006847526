// A data set whose files arrive while it is read. Each file is opened as a separate set, in any format.
#pragma once

#include <memory>

#include "formats/data/format_type.h"
#include "formats/reader/file_feed.h"

namespace hctr {

/// Opens a followed set. Files are opened when they are read and released afterward. The number of samples is unknown.
/// `from`: index of the first file to read. The feed must outlive the set. Errors when a file is opened: those of the
/// format, naming the file.
std::unique_ptr<SampleSet> follow_files(const DataSection&, const Source&, KeyWidth width, const Log&,
                                        std::shared_ptr<FileFeed>, size_t from);

}  // namespace hctr
