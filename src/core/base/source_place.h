// The place of a source line in the project.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// "src/ops/common/copy.cc:12" from __FILE__ and __LINE__. The project may itself lie below a folder "src".
std::string source_place(std::string_view file, int line);

}  // namespace hctr
