// Wall-clock time for records that people and other programs read.
#pragma once

#include <string>

namespace hctr {

/// Seconds since 1970-01-01 UTC.
double unix_time();

/// 1763888888.25 -> "2025-11-23T09:08:08.250Z" (ISO 8601, UTC, milliseconds).
std::string utc_text(double unix_seconds);

}  // namespace hctr
