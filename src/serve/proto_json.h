// Converts JSON responses of the protocol to Protocol Buffers messages.
#pragma once

#include <string>
#include <string_view>

#include "config/json.h"

namespace hctr::serve {

/// Supports ServerMetadataResponse, ModelMetadataResponse, ModelConfigResponse, ModelStatisticsResponse,
/// RepositoryIndexResponse and SystemSharedMemoryStatusResponse. JSON fields that the message lacks are omitted.
std::string proto_of_json(std::string_view message, const Json&);

}  // namespace hctr::serve
