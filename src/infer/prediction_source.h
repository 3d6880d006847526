// The source of samples that are only scored.
#pragma once

#include "config/sections/config.h"
#include "formats/data/source.h"

namespace hctr {

/// The evaluation samples without the columns that only training and metrics read.
Source prediction_source(const Config&);

}  // namespace hctr
