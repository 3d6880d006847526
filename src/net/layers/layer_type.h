// A layer type: its name, arity and fields in configs, and its construction from JSON.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "config/compatibility.h"
#include "config/schema.h"
#include "net/layers/layer.h"

namespace hctr {

/// The permitted number of tensors, from `least` to `most`.
struct Arity {
  int least = 1, most = 1;
  bool holds(size_t n) const { return static_cast<int>(n) >= least && static_cast<int>(n) <= most; }
  std::string text() const;  ///< for example "1", "2 or more", "2 to 5"
};
inline constexpr int kAnyNumber = std::numeric_limits<int>::max();

/// The range of a field that counts columns, rows or parts. The maximum is low enough that products of such fields do
/// not overflow.
inline Range count_from(double least) { return between(least, 1 << 24); }

/// The parameters of a layer without fields.
struct NoParams {};

class LayerType {
 public:
  /// L is constructed from (name, P). The name is the layer's first top, which is unique in the network. Random numbers
  /// and initial weights depend on this name only, not on other layers.
  template <class L, class P = NoParams>
  static LayerType of(std::string name, std::string formula, Arity inputs, Arity outputs, Schema<P> schema) {
    LayerType type;
    type.formula_ = std::move(formula);
    type.inputs_ = inputs;
    type.outputs_ = outputs;
    type.fields_ = schema.fields();
    type.nested_ = schema.nested();
    type.name_ = std::move(name);
    type.make_ = [schema](const Json& section, const std::string& pointer, const std::string& layer_name,
                          const Compatibility& compatibility, Problems& problems) {
      P params = schema.parse(section, pointer, problems, {"name", "type", "bottom", "top"});
      if constexpr (requires { params.compatibility; }) params.compatibility = compatibility;
      return std::make_unique<L>(layer_name, std::move(params));
    };
    return type;
  }

  const std::string& name() const { return name_; }
  const std::string& formula() const { return formula_; }
  const std::string& nested() const { return nested_; }
  const std::vector<FieldDoc>& fields() const { return fields_; }
  Arity inputs() const { return inputs_; }
  Arity outputs() const { return outputs_; }
  /// Creates the layer. Copies `compatibility` to the layer's parameters if these have a member of that name.
  std::unique_ptr<Layer> make(const Json& section, const std::string& pointer, const std::string& layer_name,
                              Problems& problems, const Compatibility& compatibility = {}) const {
    return make_(section, pointer, layer_name, compatibility, problems);
  }

 private:
  std::string name_, formula_, nested_;
  Arity inputs_, outputs_;
  std::vector<FieldDoc> fields_;
  std::function<std::unique_ptr<Layer>(const Json&, const std::string&, const std::string&, const Compatibility&,
                                       Problems&)>
      make_;
};

}  // namespace hctr
