// Names of data that lie in the memory of this process, where a file could stand.
#pragma once

#include <string_view>

namespace hctr {

inline constexpr std::string_view kMemorySource = "memory:/";

/// Whether a source is a table in memory, and no file.
inline bool is_in_memory(std::string_view source) { return source.starts_with(kMemorySource); }

}  // namespace hctr
