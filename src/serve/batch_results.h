// The results of a scored batch, from which responses take their outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "infer/sample_arrays.h"
#include "infer/served_model.h"
#include "serve/model_outputs.h"
#include "serve/named_tensor.h"

namespace hctr::serve {

/// Maximum bytes of the internal tensors of a batch, and of the outputs of a response.
inline constexpr int64_t kMostResultBytes = int64_t{256} << 20;

/// The internal tensors of a model that are needed to compute requested outputs.
class WantedInternals {
 public:
  explicit WantedInternals(const ServedModel& model) : model_(&model) {}
  void add(std::span<const ServedOutput* const>);
  void add(const WantedInternals&);
  bool has(size_t internal) const { return !wanted_.empty() && wanted_[internal]; }
  /// Bytes of the wanted internal tensors of one sample, as f32.
  int64_t bytes_of_sample() const;

 private:
  const ServedModel* model_;
  std::vector<bool> wanted_;  // [internal tensor] whether outputs need it; empty: outputs need none
};

class BatchResults {
 public:
  /// Scores the samples. Errors: those of ServedModel::score().
  BatchResults(ServedModel&, const SampleArrays&, const WantedInternals&);

  /// Rows [first, first + count) of an output. The constructor's WantedInternals must include the tensors that the
  /// output needs. The result may share the batch's memory.
  NamedTensor rows(const ServedOutput&, int64_t first, int64_t count) const;

 private:
  using Values = std::shared_ptr<std::vector<float>>;
  std::vector<Values> scores_, internals_;  // null: not wanted
};

/// An f32 tensor that owns its values.
NamedTensor tensor_of(std::string name, std::vector<int64_t> shape, std::shared_ptr<const std::vector<float>> values);

}  // namespace hctr::serve
