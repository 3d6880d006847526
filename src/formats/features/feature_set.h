// The samples of one mapping of a feature specification. Their columns may be in any number of files. All threads parse
// and read binary files.
#pragma once

#include <memory>

#include "formats/data/format_type.h"

namespace hctr {

inline constexpr DataFormat kFeatureFormat{"FeatureSpec"};
FormatType feature_format();

/// Opens the mapping Source::path. Errors: those of plan_features(); Error(data) when it has no rows, or fewer than
/// num_samples where a binary chunk gives their number.
std::unique_ptr<SampleSet> open_feature_set(const DataSection&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
