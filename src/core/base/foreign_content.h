// Recognizes files of other formats by their first bytes.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// If a file that begins with `start` is compressed in an unsupported format, returns a description with the remedy:
/// "is packed with bzip2, which is not supported; unpack it: bunzip2". Returns an empty text otherwise.
std::string foreign_packing(std::string_view start);

/// Why content that begins with `start` cannot be text rows, with a remedy: "it is UTF-16; save it as UTF-8".
/// Recognizes compressed, binary, UTF-16 and HTML content, and unsupported line ends. Empty if the content may be text
/// rows. `start` should have at least a kilobyte if the content is that long.
std::string why_no_rows(std::string_view start);

}  // namespace hctr
