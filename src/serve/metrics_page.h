// The metrics of the service, in Prometheus's text format.
#pragma once

#include <string>

#include "serve/serve_core.h"

namespace hctr::serve {

/// Names and meanings are Triton's. Format: https://prometheus.io/docs/instrumenting/exposition_formats.
std::string metrics_page(const ServeCore&, int64_t connections);

}  // namespace hctr::serve
