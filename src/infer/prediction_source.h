// The source of samples that are only scored.
#pragma once

#include <string>

#include "config/sections/config.h"
#include "formats/data/source.h"

namespace hctr {

/// The evaluation samples without the columns that only training and metrics read.
Source prediction_source(const Config&);
/// The same of the samples at a path.
Source prediction_source(const Config&, const std::string& path);

}  // namespace hctr
