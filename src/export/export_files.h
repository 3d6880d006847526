// Writes the files of an exported model.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/files.h"
#include "export/model_arrays.h"
#include "hctr/use_model.h"

namespace hctr {

struct ExportFiles {
  ExportFormat format = ExportFormat::onnx;
  fs::path folder;
  int64_t most_inline = 0;  ///< arrays up to this size in bytes are stored inside model.onnx
  std::string model;        ///< description of the model
  int64_t iteration = 0;
};

/// Adds the files of a model to the set: model.json, which describes the model, and the files of the format:
///   onnx         model.onnx and, for large arrays, model.onnx.data
///   npz          dense.npz, and tables/<name>.npz with the arrays `keys`, `vectors` and, if rows have slots, `slots`
///   safetensors  the same files as npz, with the ending .safetensors
///   parquet      dense.parquet and tables/<name>.parquet
/// Errors: Error(io); errors of onnx_model(); Error(data) for a vector that is not finite.
void write_export(FileSet&, const ExportFiles&, const Config&, const ModelArrays&);

}  // namespace hctr
