// Recognizes files of other formats by their first bytes.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// The packing of a file with these first bytes, if another program must unpack it first: "is packed with bzip2, which
/// is not read; unpack it: bunzip2". Empty: none.
std::string foreign_packing(std::string_view start);

/// Why a content that begins with `start` cannot be a text of rows: it is packed, binary, UTF-16 or a page, or its
/// lines end in another way: "it is UTF-16; save it as UTF-8". Empty: it may be one. `start` should be a kilobyte or
/// more, if the content has that much.
std::string why_no_rows(std::string_view start);

}  // namespace hctr
