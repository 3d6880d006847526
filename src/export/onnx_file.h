// A model as an ONNX file: graph, inputs, outputs and initializers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "export/model_arrays.h"
#include "net/layers/onnx_graph.h"

namespace hctr {

/// An input or an output.
struct OnnxValue {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::string> dims;  ///< numbers, or names of sizes that a caller chooses: {"N", "13"}
};

struct OnnxModel {
  OnnxGraph graph;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<StoredArray> initializers;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The maximum size of a Protocol Buffers file is 2 GiB, some of which is reserved for the graph.
inline constexpr int64_t kMostOnnxBytes = (int64_t{1} << 31) - (int64_t{1} << 26);

/// Writes `path`; and <path>.data with the initializers of more than `most_inline` bytes, at least a KiB, or with all
/// of more than a KiB if the others together are too large for one file. Constants of the graph stay inside: runtimes
/// derive shapes from them. Format: onnx.proto of ONNX 1.8 (IR version 7, opset 13).
void write_onnx(FileSet&, const fs::path& path, const OnnxModel&, int64_t most_inline);

}  // namespace hctr
