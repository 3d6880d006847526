// Answers of the protocol that are JSON, as messages of Protocol Buffers.
#pragma once

#include <string>
#include <string_view>

#include "config/json.h"

namespace hctr::serve {

/// Of the messages ServerMetadataResponse, ModelMetadataResponse, ModelConfigResponse, ModelStatisticsResponse,
/// RepositoryIndexResponse and SystemSharedMemoryStatusResponse. Fields of the JSON that the message lacks are left
/// out.
std::string proto_of_json(std::string_view message, const Json&);

}  // namespace hctr::serve
