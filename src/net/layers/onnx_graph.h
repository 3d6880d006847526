// A graph of ONNX operators. Layers add their evaluation operators. The graph contains no files and no weight values.
//
// Operators have opset kOnnxOpset; see https://github.com/onnx/onnx/blob/main/docs/Operators.md.
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
  std::vector<std::string> in, out;  ///< an empty name marks an omitted optional input
  std::vector<OnnxAttribute> attributes;
};

/// Constants of the graph.
struct OnnxConstant {
  std::string name;
  std::vector<int64_t> dims;  ///< empty: a scalar
  std::variant<std::vector<float>, std::vector<int64_t>> values;
};

class OnnxGraph {
 public:
  using Attributes = std::vector<OnnxAttribute>;

  /// Sets the prefix for all names added after this call.
  void enter(std::string scope) { scope_ = std::move(scope); }

  /// A new, unique name.
  std::string name(const std::string& word) { return scope_ + "/" + word + "_" + std::to_string(names_++); }
  /// Adds a node and returns the name of its output.
  std::string add(const std::string& op, std::vector<std::string> in, Attributes attributes = {});
  /// Adds a node whose output has the given name.
  void add_as(const std::string& out, const std::string& op, std::vector<std::string> in, Attributes attributes = {});
  /// Adds a scalar or a vector constant and returns its name.
  std::string number(float value) { return add_constant({}, std::vector<float>{value}); }
  std::string number(int64_t value) { return add_constant({}, std::vector<int64_t>{value}); }
  std::string numbers(std::vector<int64_t> values);
  std::string add_constant(std::vector<int64_t> dims, std::variant<std::vector<float>, std::vector<int64_t>> values);

  /// The dimensions of `shape` as an argument of Reshape, with the number of rows inferred from the number of elements.
  /// The graph therefore fits every batch size.
  std::string rows_of(const Shape& shape);
  /// Slices elements [begin, end) along an axis.
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

/// The tensors of a layer in the graph. Dimension 0 of each shape is some batch size, on which the graph must not
/// depend.
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
