// HTTP bodies compressed by gzip or deflate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hctr::serve {

/// Decompresses gzip and zlib data. Errors: Refusal for invalid data, and for a result of more than `most` bytes.
std::string unpacked(std::string_view bytes, int64_t most);
std::string gzip_packed(std::string_view bytes);

}  // namespace hctr::serve
