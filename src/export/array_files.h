// Writes named arrays as NumPy .npz and Hugging Face .safetensors files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "export/model_arrays.h"

namespace hctr {

/// Writes an uncompressed zip archive with one file <name>.npy per array. Formats: NumPy's "numpy.lib.format", version
/// 1; PKWARE's "APPNOTE.TXT" 6.3 with the Zip64 extension.
void write_npz(FileSet&, const fs::path&, const std::vector<StoredArray>&);

/// `metadata`: name-text pairs for the file's header. Format: https://github.com/huggingface/safetensors, "Format".
void write_safetensors(FileSet&, const fs::path&, const std::vector<StoredArray>&,
                       const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace hctr
