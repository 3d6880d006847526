// Names a source line by its path in the project.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// Returns "src/ops/common/copy.cc:12" for __FILE__ and __LINE__. The project may itself lie below a folder "src".
std::string source_place(std::string_view file, int line);

}  // namespace hctr
