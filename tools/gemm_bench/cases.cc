#include "cases.h"

#include "core/base/expect.h"

namespace hctr::gemm_bench {
namespace {

struct Layer {
  int in, out;
};
struct Model {
  const char* name;
  /// The layers with ReLU. Layers with one output are omitted, because they use no GEMM.
  std::vector<Layer> layers;
};

/// Wide & Deep and the deep part of DCN have the same layers.
const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"Wide & Deep, DCN", {{429, 1024}, {1024, 1024}}},
      {"DeepFM", {{390, 400}, {400, 400}, {400, 400}}},
      {"DLRM", {{13, 512}, {512, 256}, {256, 128}, {479, 1024}, {1024, 1024}, {1024, 512}, {512, 256}}},
  };
  return all;
}

/// The layers whose forward GEMM is a case of its own.
constexpr Layer kForward[] = {{13, 512},   {256, 128}, {390, 400},  {400, 400},  {429, 1024},
                              {479, 1024}, {512, 256}, {1024, 512}, {1024, 1024}};
/// The layers whose dgrad is a case of its own: their input is the output of a ReLU.
constexpr Layer kDgrad[] = {{256, 128}, {400, 400}, {512, 256}, {1024, 512}, {1024, 1024}};

std::string name_of(const Layer& layer) { return cat(layer.in, " x ", layer.out); }

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Operator op : {Operator::wgrad, Operator::dgrad, Operator::forward})
    for (const Type type : {Type::f16, Type::bf16})
      for (const int batch : {512, 2048, 16384, 65536}) {
        if (op == Operator::forward)
          for (const Layer& layer : kForward)
            cases.push_back({op, type, name_of(layer), batch, {{batch, layer.out, layer.in}}});
        if (op == Operator::dgrad)
          for (const Layer& layer : kDgrad)
            cases.push_back({op, type, name_of(layer), batch, {{batch, layer.in, layer.out}}});
        if (op == Operator::wgrad)
          for (const Model& model : models()) {
            Case one{op, type, model.name, batch, {}};
            for (const Layer& layer : model.layers) one.gemms.push_back({layer.in, layer.out, batch});
            cases.push_back(one);
          }
      }
  return cases;
}

}  // namespace hctr::gemm_bench
