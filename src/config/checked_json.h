// A JSON file that ends with a checksum of itself.
#pragma once

#include <string>
#include <string_view>

#include "config/json.h"
#include "core/base/files.h"

namespace hctr {

/// Returns `object` as JSON text. Adds a last member "crc32": the checksum of all text before this member.
std::string with_checksum(const Json& object);
/// Reads a file that with_checksum() wrote. `what`: the file's name in messages. Errors: Error(io); Error(data) naming
/// the file when the checksum does not match, or "schema" is not `schema`.
Json read_checked_json(const fs::path&, std::string_view what, int64_t schema);
/// Reads a JSON file. If the file's "schema" is `first_checked` or higher, the file must end with a checksum. Files
/// with a lower or no schema need none, because older versions and other programs wrote them. Sets `checked` if the
/// file has a checksum. Errors: Error(io); Error(data) naming the file when its content is not JSON, or its checksum is
/// missing or wrong.
Json read_json_checked_from(int64_t first_checked, const fs::path&, std::string_view what, bool& checked);

}  // namespace hctr
