// Paths of the source tree and of the programs.
#pragma once

#include <filesystem>

namespace hctr::test {

/// The root of the source tree.
std::filesystem::path source_dir();
/// The folder of the programs of this build.
std::filesystem::path bin_dir();

}  // namespace hctr::test
