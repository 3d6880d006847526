// What this build is: its version, the commit it was made from and the libraries it knows.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// The version of the project, as CMakeLists.txt states it: "0.1.0".
std::string_view version();

/// What --version prints: `program` and its version, then a line each for commit, build type, CUDA, NCCL, MPI, Parquet.
std::string version_text(std::string_view program);

}  // namespace hctr
