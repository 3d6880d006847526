// Bodies of HTTP that are packed by gzip or deflate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hctr::serve {

/// Unpacks gzip and zlib's format. Errors: Refusal for other bytes, and where more than `most` come out.
std::string unpacked(std::string_view bytes, int64_t most);
std::string gzip_packed(std::string_view bytes);

}  // namespace hctr::serve
