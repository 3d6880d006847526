// A model as an ONNX file: graph, inputs, outputs and initializers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "export/model_arrays.h"
#include "net/layers/onnx_graph.h"

namespace hctr {

/// An input or output of the graph.
struct OnnxValue {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::string> dims;  ///< integers, or names of variable sizes: {"N", "13"}
};

struct OnnxModel {
  OnnxGraph graph;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<StoredArray> initializers;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// A Protocol Buffers file may have at most 2 GiB. 64 MiB of it are reserved for the graph.
inline constexpr int64_t kMostOnnxBytes = (int64_t{1} << 31) - (int64_t{1} << 26);

/// Writes the model to `path` and large initializers to <path>.data. An initializer is stored in <path>.data if it
/// exceeds `most_inline` bytes (at least 1 KiB). If the initializers left in `path` exceed kMostOnnxBytes, all
/// initializers above 1 KiB are stored in <path>.data. Constants of the graph stay in `path`, because runtimes derive
/// shapes from constants. Format: onnx.proto of ONNX 1.8 (IR version 7, opset 13).
void write_onnx(FileSet&, const fs::path& path, const OnnxModel&, int64_t most_inline);

}  // namespace hctr
