// The named tensors for one run of an operator under test.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/device/context.h"
#include "support/guarded_tensor.h"

namespace hctr::test {

/// `same` is the dtype under test. `wide` is f32, or f64 in gradient checks. The other values name a fixed dtype.
enum class Type { same, wide, i32, i64, u32 };

struct Input {
  std::string name;
  Shape shape;
  double low = -1, high = 1;  ///< bounds of the uniform distribution of values
  Type type = Type::same;
};

/// Creates inputs and outputs on demand, and checks all of them after the run.
class Rig {
 public:
  struct Setup {
    Device device;
    DType dtype;       ///< dtype of tensors of Type::same
    DType rounded_to;  ///< values are rounded to this dtype, so that the reference gets the inputs of the tested dtype
    std::vector<RowLayout> layouts;  ///< assigned to the tensors cyclically
    int threads = 4;
    std::vector<Input> inputs;
    StepState state;
    bool tf32 = false;  ///< RuntimeOptions::tf32
  };
  explicit Rig(Setup);

  Context ctx;

  /// An input. The operator must not change it.
  Tensor operator[](const std::string& name);
  /// An input that the operator changes.
  Tensor inout(const std::string& name);
  /// An output. The operator must write every element.
  Tensor out(const std::string& name, Shape, Type = Type::same);
  /// Scratch memory.
  Tensor scratch(const std::string& name, const TensorSpec&);
  /// The gradient of an input or of an output. The operator must write gradients of inputs. Gradients of outputs have
  /// random values.
  Tensor d(const std::string& name);
  /// Sets the gradient of output `name`, for operators without an output gradient, such as losses.
  void gradient_of_loss(const std::string& name, double value) { fixed_gradients_[name] = value; }
  StepState& state() { return setup_.state; }
  DType dtype() const { return setup_.dtype; }

  /// Adds `delta` to an element of an input permanently.
  void perturb(const std::string& input, size_t element, double delta);
  /// Restores every tensor to its state before the first run.
  void restore();
  /// Copies all tensors to the host, and returns all violations.
  std::vector<std::string> fetch();

  /// The elements of a tensor after fetch(). The gradient of tensor x has the name "d_x".
  std::vector<double> values(const std::string& name) const { return at(name).memory.values(); }
  std::vector<std::byte> bytes(const std::string& name) const { return at(name).memory.element_bytes(); }
  /// The names of the tensors that the operator wrote.
  std::vector<std::string> written() const;
  /// The gradients of all output elements, for gradient checks.
  std::map<std::string, std::vector<double>> output_gradients() const;
  /// The inputs whose gradients the backward operator wrote.
  std::vector<std::string> inputs_with_gradients() const;
  DType dtype_of(const std::string& name) const { return at(name).memory.tensor().dtype(); }

 private:
  enum class Role { input, inout, output, scratch };
  struct Entry {
    GuardedTensor memory;
    Role role;
  };
  const Entry& at(const std::string& name) const;
  Entry& add(const std::string& name, Role, DType, Shape);
  Entry& input(const std::string& name);
  DType dtype_for(Type) const;
  std::vector<double> random(const std::string& name, int64_t count, double low, double high, Type) const;

  Setup setup_;
  Buffer device_state_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, double> fixed_gradients_;
};

}  // namespace hctr::test
