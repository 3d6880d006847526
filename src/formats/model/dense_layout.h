// The layout file stored with a dense model file: the byte offset of each weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// A weight in a dense model file.
struct SavedWeight {
  std::string name;
  std::vector<int64_t> shape;
  size_t at = 0;  // byte offset in the file
  size_t bytes() const {
    size_t bytes = sizeof(float);
    for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
    return bytes;
  }
};

/// Reads the weights in a layout file, in file order. `bytes`: size of the dense model file. Errors: Error(io);
/// Error(data) if `layout` is not a layout file, or describes a dense file of another size.
std::vector<SavedWeight> weights_in_layout(const fs::path& layout, size_t bytes);

}  // namespace hctr
