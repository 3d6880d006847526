// Data files of which each host, or each rank, has copies of its own.
#pragma once

#include <string>

namespace hctr {

/// The path with the name of this host in place of {host}.
std::string path_on_host(std::string path);
/// The path with the number of a rank in place of {rank}.
std::string path_of_rank(std::string path, int rank);

}  // namespace hctr
