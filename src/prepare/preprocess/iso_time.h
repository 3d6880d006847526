// Reads ISO 8601 dates and times as numbers.
#pragma once

#include <optional>
#include <string_view>

namespace hctr {

struct IsoTime {
  double seconds = 0;                     ///< seconds from 1970 to the written time, as if its zone were UTC
  std::optional<int> minutes_from_utc{};  ///< offset of the zone; none without a zone

  double utc_seconds() const { return seconds - 60.0 * minutes_from_utc.value_or(0); }
};

/// Reads "2017-04-01" or "20170401". A time may follow after 'T' or a blank: "10:30", "10:30:59.25", "103059", "10". A
/// zone may follow the time: "Z", "+02:00", "-0530", "+02". Returns none for any other text, and for days that no
/// calendar has. Ignores blanks around the text.
std::optional<IsoTime> read_iso_time(std::string_view text);

}  // namespace hctr
