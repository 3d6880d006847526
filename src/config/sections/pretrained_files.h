// Reading the files that hold pretrained vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "config/sections/pretrained.h"

namespace hctr {

/// Passes the keys and vectors on, block by block. Errors: Error(io); Error(data) naming file and place.
void read_pretrained(const Pretrained&, int64_t dim,
                     const std::function<void(std::span<const int64_t> keys, std::span<const float> vectors)>& sink);

}  // namespace hctr
