// The configuration of a served model, read from config.pbtxt or derived from the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "serve/batch_scheduler.h"
#include "serve/model_outputs.h"
#include "serve/request_samples.h"

namespace hctr::serve {

struct ModelConfig {
  std::string name, platform = "huge_ctr", backend = "huge_ctr";
  std::optional<int64_t> max_batch_size;  ///< none: the model decides
  /// as configured, without the batch dimension; empty: derived from the model
  std::vector<TensorDescription> inputs, outputs;
  std::map<std::string, std::string> parameters;
  /// version_policy: the number of newest versions to serve. 0: serves `versions`, or all versions if `versions` is
  /// empty.
  int64_t newest_versions = 1;
  std::vector<int64_t> versions;     ///< version_policy: the selected versions
  std::optional<int64_t> instances;  ///< number of instances in instance_group
  ScheduleOptions schedule;
  std::vector<std::string> notes;  ///< notes about ignored fields
};

/// Reads a ModelConfig message, from the result of read_proto_text() or from JSON. `where`: the location in error
/// messages. Errors: Error(config) naming the field.
ModelConfig read_model_config(const Json&, const std::string& where, const ScheduleOptions& defaults);

/// Sets omitted fields to the model's values, and checks all other fields against the model. If the config names
/// outputs, restricts `outputs` to these. Errors: Error(config).
void complete_model_config(ModelConfig&, const RequestSamples&, ModelOutputs& outputs);

/// Makes the input tensor of one sample from raw bytes, for a model with a single input. Errors: Refusal for a model
/// with several inputs, and if the shape does not follow from the number of bytes.
NamedTensor raw_input(const ModelConfig&, std::string_view bytes);

/// The response to a configuration request.
Json json_of(const ModelConfig&, int instances, bool on_gpu);
/// The shape of an input or output in metadata, including the batch dimension.
std::vector<int64_t> shape_in_metadata(const ModelConfig&, const TensorDescription&);

}  // namespace hctr::serve
