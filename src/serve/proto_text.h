// Reads the text format of Protocol Buffers, such as config.pbtxt.
#pragma once

#include <string_view>

#include "config/json.h"

namespace hctr::serve {

/// Returns the fields of a message as JSON. A field that occurs several times, or whose value is a list, becomes an
/// array; enumeration values become texts. Format: https://protobuf.dev/reference/protobuf/textformat-spec, without
/// extensions and Any. Errors: Error(config) "<name>: line 3: ...".
Json read_proto_text(std::string_view text, std::string_view name);

}  // namespace hctr::serve
