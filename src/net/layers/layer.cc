#include "net/layers/layer.h"

namespace hctr {

void Layer::to_onnx(OnnxGraph&, const OnnxIo&) const {
  throw LayerError("type", "the layer has no ONNX equivalent; export its weights as npz, safetensors or parquet");
}

void need_rank(const TensorSpec& spec, int rank, const std::string& field, const std::string& layer_type) {
  if (spec.shape.rank() == rank) return;
  throw LayerError(field, cat(layer_type, " takes a tensor of ", rank, " dimensions, found shape ",
                              to_string(spec.shape), rank == 2 ? "; add a Reshape before it" : ""));
}

void need_one_shape(const Specs& inputs, const std::string& layer_type) {
  for (size_t i = 1; i < inputs.size(); ++i)
    if (inputs[i].shape != inputs[0].shape)
      throw LayerError(cat("bottom/", i), cat(layer_type, " takes tensors of equal shape: the first has ",
                                              to_string(inputs[0].shape), ", this one ", to_string(inputs[i].shape)));
}

bool writes_weights_in_backward(const LayerSpec& spec, const LayerIo& io) {
  using When = LayerTraits::WeightsInBackward;
  const When when = spec.traits.weights_in_backward;
  return when == When::always || (when == When::with_gradient_of_input && io.d_in[0]);
}

}  // namespace hctr
