// Dates and times of ISO 8601 as numbers.
#pragma once

#include <optional>
#include <string_view>

namespace hctr {

struct IsoTime {
  double seconds = 0;                     ///< seconds since 1970 of the time as it is written
  std::optional<int> minutes_from_utc{};  ///< offset of its zone, if it has one

  double utc_seconds() const { return seconds - 60.0 * minutes_from_utc.value_or(0); }
};

/// Reads "2017-04-01" or "20170401", or such a date with a time after 'T' or a blank: "10:30", "10:30:59.25",
/// "103059", "10", and a zone: "Z", "+02:00", "-0530", "+02". Nothing for any other text and for days that no calendar
/// has. Ignores blanks around it.
std::optional<IsoTime> read_iso_time(std::string_view text);

}  // namespace hctr
