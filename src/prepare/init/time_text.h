// Which texts are dates or times of day.
#pragma once

#include <string_view>

namespace hctr {

/// Whether a text is a calendar date, a time of day, or a date with a time behind it:
///   2026-11-23, 2026/11/23, 23.11.2026, 23.11.26, 11/23/2026, 23-11-2026, each alone or before "T" or " " and a time
///   10:40:00, 10:40:00.125
/// Months, days, hours, minutes and seconds must exist. Addresses (10.0.0.1), versions (1.2.3) and other numbers with
/// signs between them are no dates.
bool is_time_text(std::string_view text);

}  // namespace hctr
