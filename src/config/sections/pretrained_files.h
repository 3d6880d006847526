// Reads the files with pretrained vectors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "config/sections/pretrained.h"

namespace hctr {

/// Passes the keys and vectors to the callback in blocks. Errors: Error(io); Error(data) naming file and position.
void read_pretrained(const Pretrained&, int64_t dim,
                     const std::function<void(std::span<const int64_t> keys, std::span<const float> vectors)>& sink);

}  // namespace hctr
