// Writes named arrays in formats of other programs: NumPy's .npz and Hugging Face's .safetensors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "export/model_arrays.h"

namespace hctr {

/// Writes an uncompressed zip archive with a file <name>.npy for each array. Format: NumPy's "numpy.lib.format",
/// version 1; "APPNOTE.TXT" 6.3 of PKWARE, with its Zip64 extension if an archive needs it.
void write_npz(FileSet&, const fs::path&, const std::vector<StoredArray>&);

/// `metadata`: texts by name. Format: https://github.com/huggingface/safetensors, "Format".
void write_safetensors(FileSet&, const fs::path&, const std::vector<StoredArray>&,
                       const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace hctr
