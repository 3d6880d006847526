// Selects the rows that are replicated on every rank.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

struct Replication {
  enum class Of {
    none,
    frequent,  ///< keys listed in a file, or the most frequent keys of the first steps
    all,       ///< every row; the table has the direct keys of all ranks
  };
  Of of = Of::none;
  std::string keys_file;  ///< file that lists the frequent keys; if empty, counting finds them
  int64_t steps = 0;      ///< steps in which keys are counted
  int64_t most_rows = 0;  ///< maximum number of frequent rows to find
};

}  // namespace hctr
