#include "layers/layer.h"

namespace hctr {

void need_rank(const TensorSpec& spec, int rank, const std::string& field, const std::string& layer_type) {
  if (spec.shape.rank() == rank) return;
  throw PlanError(field, cat(layer_type, " takes a tensor of ", rank, " dimensions, and this one has shape ", to_string(spec.shape),
                             rank == 2 ? "; put a Reshape before it" : ""));
}

}  // namespace hctr
