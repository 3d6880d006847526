// The configuration of a served model: what config.pbtxt says, or what is made where there is none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "serve/batch_scheduler.h"
#include "serve/request_samples.h"

namespace hctr::serve {

struct ModelConfig {
  std::string name, platform = "huge_ctr", backend = "huge_ctr";
  std::optional<int64_t> max_batch_size;           ///< none: the model decides
  std::vector<TensorDescription> inputs, outputs;  ///< as stated, without the size of a batch; empty: the model decides
  std::map<std::string, std::string> parameters;
  int64_t newest_versions = 1;       ///< version_policy; 0: all, or those of `versions`
  std::vector<int64_t> versions;     ///< specific ones
  std::optional<int64_t> instances;  ///< of instance_group
  ScheduleOptions schedule;
  std::vector<std::string> notes;  ///< fields that have no effect here
};

/// The message ModelConfig, as read_proto_text() gives it, or as JSON. `where`: for messages. Errors: Error(config)
/// naming the field.
ModelConfig read_model_config(const Json&, const std::string& where, const ScheduleOptions& defaults);

/// What the model itself states, where the config does not, and a check of what it does. Errors: Error(config).
void complete_model_config(ModelConfig&, const RequestSamples&, const std::vector<ModelTensor>& outputs);

/// The one input of a model as bytes alone, of one sample. Errors: Refusal for a model with several, and where a size
/// does not follow from the bytes.
NamedTensor raw_input(const ModelConfig&, std::string_view bytes);

/// The answer to a request for the configuration.
Json json_of(const ModelConfig&, int instances, bool on_gpu);
/// Sizes of an input or output in metadata: with that of the batch.
std::vector<int64_t> shape_in_metadata(const ModelConfig&, const TensorDescription&);

}  // namespace hctr::serve
