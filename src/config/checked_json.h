// A JSON file that ends with a checksum of itself.
#pragma once

#include <string>
#include <string_view>

#include "config/json.h"
#include "core/base/files.h"

namespace hctr {

/// The text of an object with a checksum of everything before it as its last member.
std::string with_checksum(const Json& object);
/// Reads a file of such text. `what`: the word for it in messages. Errors: Error(io); Error(data) naming the file when
/// its content does not have its checksum, or its "schema" is not `schema`.
Json read_checked_json(const fs::path&, std::string_view what, int64_t schema);
/// The same for a file that has a checksum from the schema `first_checked` on; older versions and other programs wrote
/// it without one. `checked`: whether it has one. Errors: Error(io); Error(data) naming the file when it is not JSON,
/// or its checksum is missing or unexpected.
Json read_json_checked_from(int64_t first_checked, const fs::path&, std::string_view what, bool& checked);

}  // namespace hctr
