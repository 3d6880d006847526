// Where the tests find the source tree and the programs.
#pragma once

#include <filesystem>

namespace hctr::test {

/// The root of the source tree.
std::filesystem::path source_dir();
/// The folder of the programs that were built with these tests.
std::filesystem::path bin_dir();

}  // namespace hctr::test
