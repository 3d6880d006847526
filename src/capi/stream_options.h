// Converts options and statistics of streams between C structs and C++ structs.
#pragma once

#include "hctr/delta_stream.h"
#include "hctr/huge_ctr.h"

namespace hctr::capi {

/// Errors: Error(usage) for missing brokers, and for a setting that is not "name=value".
StreamOptions stream_options(const hctr_stream_options& from);
hctr_stream_statistics stream_statistics(const StreamStatistics& from);

}  // namespace hctr::capi
