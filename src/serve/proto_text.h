// Reads messages of Protocol Buffers that are written as text, as config.pbtxt is.
#pragma once

#include <string_view>

#include "config/json.h"

namespace hctr::serve {

/// The fields of a message as JSON: a field that appears several times, or whose value is a list, becomes an array;
/// words of enumerations become texts. Format: https://protobuf.dev/reference/protobuf/textformat-spec. Extensions and
/// Any are none of it. Errors: Error(config) "<name>: line 3: ...".
Json read_proto_text(std::string_view text, std::string_view name);

}  // namespace hctr::serve
