// Reads ONNX files and evaluates their graphs in double, to check exports without an ONNX runtime. Implements the
// operator specification for small tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hctr::test {

/// A tensor of floats, or of integers and booleans (stored as integers).
struct OnnxArray {
  std::vector<int64_t> dims;
  std::vector<double> reals;
  std::vector<int64_t> integers;
  bool is_integer = false;

  int64_t elements() const;
  static OnnxArray of(std::vector<int64_t> dims, std::vector<double> reals) {
    return {std::move(dims), std::move(reals), {}, false};
  }
  static OnnxArray of(std::vector<int64_t> dims, std::vector<int64_t> integers) {
    return {std::move(dims), {}, std::move(integers), true};
  }
};
using OnnxArrays = std::map<std::string, OnnxArray>;

struct OnnxFile {
  struct Node {
    std::string op;
    std::vector<std::string> in, out;
    std::map<std::string, int64_t> integers;
    std::map<std::string, double> reals;
    std::map<std::string, std::vector<int64_t>> lists;

    int64_t integer(const std::string& name, int64_t otherwise) const {
      const auto at = integers.find(name);
      return at == integers.end() ? otherwise : at->second;
    }
  };
  struct Value {
    std::string name;
    int64_t type = 0;  ///< ONNX element type; 1: float, 7: int64
    std::vector<std::string> dims;
  };
  int64_t ir_version = 0, opset = 0;
  std::vector<Node> nodes;
  std::vector<Value> inputs, outputs;
  OnnxArrays initializers;
  std::map<std::string, int64_t> external;  ///< offsets of initializers in the external data file, by name
  std::map<std::string, std::string> metadata;
};

/// Reads an ONNX file. On a format error, fails the test and returns the part read so far.
OnnxFile read_onnx(const std::filesystem::path&);

/// Returns all tensors that the graph computes from these inputs. Throws std::runtime_error with the name of an
/// unsupported operator, or of a tensor that no earlier node produces.
OnnxArrays evaluate(const OnnxFile&, OnnxArrays inputs);

/// Reads the arrays of an .npz file. Throws std::runtime_error for features that write_npz() does not use.
OnnxArrays read_npz(const std::filesystem::path&);

}  // namespace hctr::test
