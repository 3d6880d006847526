// Which rows of an embedding table an update changes.
#pragma once

namespace hctr {

/// Which embedding rows a step changes.
enum class UpdateType {
  local,        ///< rows of the batch only
  global,       ///< every row; rows that are not in the batch have gradient 0
  lazy_global,  ///< rows of the batch, which catch up on the skipped global updates (Adam)
};

}  // namespace hctr
