// The classic models as configs in the syntax of every version that supports them. Each model and each version is
// described once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"

namespace hctr::test {

enum class Version { v2_1, v2_2, v2_2_1, v2_3, v3_0, v3_1 };
inline constexpr Version kVersions[] = {Version::v2_1, Version::v2_2, Version::v2_2_1,
                                        Version::v2_3, Version::v3_0, Version::v3_1};
std::string name_of(Version);

/// full: a realistic size; small: the same layers for a few small batches.
enum class Size { full, small };

/// Options of a config.
struct Variant {
  std::string optimizer;  ///< empty: the optimizer of the model
  std::string format;     ///< data format; empty: the format of the model
};

struct Topology {
  std::string name;
  Version since;
  bool raw;  ///< whether the full size reads Raw data
  Json (*config)(Version, Size, const Variant&);
};
const std::vector<Topology>& topologies();

}  // namespace hctr::test
