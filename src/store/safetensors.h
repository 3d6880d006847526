// Tables in files of Hugging Face's safetensors.
#pragma once

#include <functional>
#include <span>

#include "core/base/files.h"

namespace hctr {

/// Reads arrays "key" (I64 or I32, [n]) and "vector" (F32, F16 or BF16, [n, dim]), block by block. A file with one
/// two-dimensional array alone has the keys 0, 1, 2, ... Format: https://github.com/huggingface/safetensors, "Format".
/// Errors: Error(io); Error(data) naming the file and what does not fit.
void read_safetensors(const fs::path&, int64_t dim,
                      const std::function<void(std::span<const int64_t> keys, std::span<const float> rows)>& sink);

}  // namespace hctr
