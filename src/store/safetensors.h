// Reads tables from safetensors files of Hugging Face.
#pragma once

#include <functional>
#include <span>

#include "core/base/files.h"

namespace hctr {

/// Reads the arrays "key" (I64 or I32, [n]) and "vector" (F32, F16 or BF16, [n, dim]) in blocks. If the file has only
/// one two-dimensional array, the keys are 0, 1, 2, ... Format: https://github.com/huggingface/safetensors, "Format".
/// Errors: Error(io); Error(data) with the file's name and the problem.
void read_safetensors(const fs::path&, int64_t dim,
                      const std::function<void(std::span<const int64_t> keys, std::span<const float> rows)>& sink);

}  // namespace hctr
