// Which rows of an embedding table an update changes.
#pragma once

namespace hctr {

/// Which embedding rows a step changes.
enum class UpdateType {
  local,        ///< rows of the batch
  global,       ///< every row, as if absent ones had gradient 0
  lazy_global,  ///< rows of the batch, catching up on what global would have done to them (Adam)
};

}  // namespace hctr
