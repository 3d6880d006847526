// The samples of one mapping of a feature specification. Sample columns may be spread over several files. Binary files
// are read and parsed by all threads.
#pragma once

#include <memory>

#include "formats/data/format_type.h"

namespace hctr {

inline constexpr DataFormat kFeatureFormat{"FeatureSpec"};
FormatType feature_format();

/// Opens the mapping Source::path. Errors: those of plan_features(); Error(data) if the mapping has no rows, or if a
/// binary chunk has fewer than num_samples rows.
std::unique_ptr<SampleSet> open_feature_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
