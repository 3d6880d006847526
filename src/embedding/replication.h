// Which rows are replicated on every rank.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

struct Replication {
  enum class Of {
    none,
    frequent,  ///< the keys that a file names, or that come often enough in the first steps
    all,       ///< every row; the table has direct keys, those of all ranks
  };
  Of of = Of::none;
  std::string keys_file;  ///< of frequent keys; empty: they are found
  int64_t steps = 0;      ///< whose keys are counted to find them
  int64_t most_rows = 0;  ///< at most, that are found
};

}  // namespace hctr
