// A graph of ONNX operators, to which layers add what they compute in evaluation. It contains no files and no weight
// values.
//
// Operators are those of opset kOnnxOpset, documented at https://github.com/onnx/onnx/blob/main/docs/Operators.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/device/tensor.h"

namespace hctr {

inline constexpr int64_t kOnnxOpset = 13;

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

struct OnnxNode {
  std::string op;
  std::vector<std::string> in, out;  ///< an empty name: an optional input that is absent
  std::vector<OnnxAttribute> attributes;
};

/// Constants of the graph.
struct OnnxConstant {
  std::string name;
  std::vector<int64_t> dims;  ///< none: a scalar
  std::variant<std::vector<float>, std::vector<int64_t>> values;
};

class OnnxGraph {
 public:
  using Attributes = std::vector<OnnxAttribute>;

  /// Sets the prefix of all names added from now on.
  void enter(std::string scope) { scope_ = std::move(scope); }

  /// A new, unique name.
  std::string name(const std::string& word) { return scope_ + "/" + word + "_" + std::to_string(names_++); }
  /// Adds a node and returns the name of its output.
  std::string add(const std::string& op, std::vector<std::string> in, Attributes attributes = {});
  /// The same, with a given name for the output.
  void add_as(const std::string& out, const std::string& op, std::vector<std::string> in, Attributes attributes = {});
  /// Adds a scalar or a vector constant and returns its name.
  std::string number(float value) { return add_constant({}, std::vector<float>{value}); }
  std::string number(int64_t value) { return add_constant({}, std::vector<int64_t>{value}); }
  std::string numbers(std::vector<int64_t> values);
  std::string add_constant(std::vector<int64_t> dims, std::variant<std::vector<float>, std::vector<int64_t>> values);

  /// The dimensions of `shape` as an argument of Reshape: the number of rows follows from the elements, whatever the
  /// batch.
  std::string rows_of(const Shape& shape);
  /// Elements [begin, end) along an axis.
  std::string slice(const std::string& x, int64_t axis, int64_t begin, int64_t end);
  void slice_as(const std::string& out, const std::string& x, int64_t axis, int64_t begin, int64_t end);

  const std::vector<OnnxNode>& nodes() const { return nodes_; }
  const std::vector<OnnxConstant>& constants() const { return constants_; }

 private:
  std::string scope_;
  int64_t names_ = 0;
  std::vector<OnnxNode> nodes_;
  std::vector<OnnxConstant> constants_;
};

/// The tensors of a layer in the graph. The first dimension of a shape is the size of some batch; the graph must not
/// depend on it.
struct OnnxIo {
  struct Value {
    std::string name;
    Shape shape;
  };
  std::vector<Value> in, out;               ///< for a loss: in = {logits}, out = {prediction}
  std::vector<std::string> weights, state;  ///< in the order of LayerSpec

  const std::string& x() const { return in[0].name; }
  const std::string& y() const { return out[0].name; }
};

}  // namespace hctr
