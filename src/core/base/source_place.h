// Where in the project a line of source lies.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// "src/ops/common/copy.cc:12" of what __FILE__ and __LINE__ are there. The project may itself lie below a folder
/// "src".
std::string source_place(std::string_view file, int line);

}  // namespace hctr
