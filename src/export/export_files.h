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
  int64_t most_inline = 0;  ///< maximum bytes of an array in model.onnx itself
  std::string model;        ///< describes the model
  int64_t iteration = 0;
};

/// Adds the files of a model to the set:
///   onnx         model.onnx and, for large arrays, model.onnx.data
///   npz          dense.npz, and tables/<name>.npz with the arrays keys, vectors and, if rows belong to slots, slots
///   safetensors  the same with that ending
///   parquet      dense.parquet and tables/<name>.parquet
/// and model.json, which describes them. Errors: Error(io); those of onnx_model(); Error(data) for a vector that
/// is not finite.
void write_export(FileSet&, const ExportFiles&, const Config&, const ModelArrays&);

}  // namespace hctr
