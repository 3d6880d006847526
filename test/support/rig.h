// The tensors of one run of an operator under test, by name.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/context.h"
#include "support/guarded_tensor.h"

namespace hctr::test {

/// Of the dtype under test, or f32 whatever that is (f64 in gradient checks), or a fixed one.
enum class Type { same, wide, i32, i64, u32 };

struct Input {
  std::string name;
  Shape shape;
  double low = -1, high = 1;  ///< values are uniform between them
  Type type = Type::same;
};

/// Makes inputs on demand, hands out outputs to be filled, and judges both afterwards.
class Rig {
 public:
  struct Setup {
    Device device;
    DType dtype;       ///< of tensors of Type::same
    DType rounded_to;  ///< of the values inside, so that a reference sees what the tested type can hold
    std::vector<Placement> placements;  ///< taken in turn by the tensors
    int threads = 4;
    std::vector<Input> inputs;
    StepState state;
  };
  explicit Rig(Setup);

  Context ctx;

  /// An input. The operator must leave it as it is.
  Tensor operator[](const std::string& name);
  /// An input that the operator changes.
  Tensor inout(const std::string& name);
  /// An output; every element must be written.
  Tensor out(const std::string& name, Shape, Type = Type::same);
  /// Memory the operator may use as it likes.
  Tensor scratch(const std::string& name, const TensorSpec&);
  /// The gradient of an input (to be written), or of an output (given: random numbers).
  Tensor d(const std::string& name);
  /// What stands for the gradient of output `name` where the operator takes none: a loss.
  void gradient_of_loss(const std::string& name, double value) { fixed_gradients_[name] = value; }
  StepState& state() { return setup_.state; }
  DType dtype() const { return setup_.dtype; }

  /// Adds `delta` to an element of an input, from now on.
  void perturb(const std::string& input, size_t element, double delta);
  /// Every tensor as it was before the first run.
  void restore();
  /// Reads everything back and returns all complaints.
  std::vector<std::string> fetch();

  /// After fetch(): numbers of any tensor, in order; gradients are "d_" and the name.
  std::vector<double> values(const std::string& name) const { return at(name).memory.values(); }
  std::vector<std::byte> bytes(const std::string& name) const { return at(name).memory.element_bytes(); }
  /// What the operator wrote.
  std::vector<std::string> written() const;
  /// Outputs with the gradient that each of their elements has in a check of gradients.
  std::map<std::string, std::vector<double>> output_gradients() const;
  /// Inputs whose gradients the backward operator wrote.
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
