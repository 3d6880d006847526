// Files that are not what they seem: how their first bytes tell what they are.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// What a file that begins with these bytes is, where another program has to unpack it first: "is packed with bzip2,
/// which is not read; unpack it: bunzip2". Empty: it is no such file.
std::string foreign_packing(std::string_view start);

/// Why a content that begins with `start` cannot be a text of rows: it is packed, binary, UTF-16, a page, or its lines
/// end in another way: "it is UTF-16; save it as UTF-8". Empty: it may be one. `start` should be a kilobyte or more
/// where there is so much.
std::string why_no_rows(std::string_view start);

}  // namespace hctr
