// Norm files as a set of samples.
#pragma once

#include <memory>

#include "formats/data/format_type.h"

namespace hctr {

inline constexpr DataFormat kNormFormat{"Norm"};
FormatType norm_format();

/// Reads the list and every header. Errors: those of read_file_list() and read_norm_header(); Error(data) when there
/// are not records.
std::unique_ptr<SampleSet> open_norm_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
