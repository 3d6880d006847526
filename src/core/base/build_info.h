// The build's version, its commit, and the libraries it contains.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hctr {

/// The version of the project, as CMakeLists.txt states it: "0.1.0".
std::string_view version();

/// Version and commit: "0.1.0 (1a2b3c4)". All processes of a training job must return the same text.
std::string build_name();

/// Properties of this build by name: "commit", "build", "CUDA", "NCCL", "MPI", "Parquet".
std::vector<std::pair<std::string, std::string>> build_facts();

/// The output of --version: first `program` and its version, then one line per entry of build_facts().
std::string version_text(std::string_view program);

}  // namespace hctr
