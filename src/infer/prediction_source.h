// The data source for prediction, where labels are not needed.
#pragma once

#include <string>

#include "config/sections/config.h"
#include "formats/data/source.h"

namespace hctr {

/// The evaluation samples without the columns that only training and metrics read.
Source prediction_source(const Config&);
/// Like prediction_source(config), for the samples at a path.
Source prediction_source(const Config&, const std::string& path);

}  // namespace hctr
