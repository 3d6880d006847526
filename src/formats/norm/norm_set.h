// Norm files as a SampleSet.
#pragma once

#include <memory>

#include "formats/data/format_type.h"

namespace hctr {

inline constexpr DataFormat kNormFormat{"Norm"};
FormatType norm_format();

/// Opens the files and reads all headers. Errors: those of read_file_list() and read_norm_header(); Error(data) if
/// there are no records.
std::unique_ptr<SampleSet> open_norm_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
