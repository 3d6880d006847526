// Names of in-memory tables, which may be used like file paths in `source`.
#pragma once

#include <string_view>

namespace hctr {

inline constexpr std::string_view kMemorySource = "memory:/";

/// Whether `source` names an in-memory table instead of a file.
inline bool is_in_memory(std::string_view source) { return source.starts_with(kMemorySource); }

}  // namespace hctr
