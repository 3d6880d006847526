// Paths of data files that differ by host or by rank.
#pragma once

#include <string>

namespace hctr {

/// Replaces {host} in the path by the name of this host.
std::string path_on_host(std::string path);
/// Replaces {rank} in the path by the number of a rank.
std::string path_of_rank(std::string path, int rank);

}  // namespace hctr
