#include "serve/proto_json.h"

#include <iterator>
#include <span>

#include "core/base/expect.h"
#include "serve/named_tensor.h"
#include "serve/proto_reader.h"

namespace hctr::serve {
namespace {

struct ProtoField {
  enum Kind { text, integer, message, datatype, device_kind, map };
  const char* name;
  int number;
  Kind kind = text;
  std::span<const ProtoField> of{};  ///< fields of a message, or of a map's value type
};
using enum ProtoField::Kind;

constexpr ProtoField kDuration[] = {{"count", 1, integer}, {"ns", 2, integer}};
constexpr ProtoField kStages[] = {{"success", 1, message, kDuration},       {"fail", 2, message, kDuration},
                                  {"queue", 3, message, kDuration},         {"compute_input", 4, message, kDuration},
                                  {"compute_infer", 5, message, kDuration}, {"compute_output", 6, message, kDuration},
                                  {"cache_hit", 7, message, kDuration},     {"cache_miss", 8, message, kDuration}};
constexpr ProtoField kBatch[] = {{"batch_size", 1, integer},
                                 {"compute_input", 2, message, kDuration},
                                 {"compute_infer", 3, message, kDuration},
                                 {"compute_output", 4, message, kDuration}};
constexpr ProtoField kModelStatistics[] = {{"name", 1},
                                           {"version", 2},
                                           {"last_inference", 3, integer},
                                           {"inference_count", 4, integer},
                                           {"execution_count", 5, integer},
                                           {"inference_stats", 6, message, kStages},
                                           {"batch_stats", 7, message, kBatch}};
constexpr ProtoField kStatistics[] = {{"model_stats", 1, message, kModelStatistics}};

constexpr ProtoField kServerMetadata[] = {{"name", 1}, {"version", 2}, {"extensions", 3}};
constexpr ProtoField kTensorMetadata[] = {{"name", 1}, {"datatype", 2}, {"shape", 3, integer}};
constexpr ProtoField kModelMetadata[] = {{"name", 1},
                                         {"versions", 2},
                                         {"platform", 3},
                                         {"inputs", 4, message, kTensorMetadata},
                                         {"outputs", 5, message, kTensorMetadata}};

constexpr ProtoField kModelInput[] = {{"name", 1}, {"data_type", 2, datatype}, {"dims", 4, integer}};
constexpr ProtoField kModelOutput[] = {{"name", 1}, {"data_type", 2, datatype}, {"dims", 3, integer}};
constexpr ProtoField kLatest[] = {{"num_versions", 1, integer}};
constexpr ProtoField kSpecific[] = {{"versions", 1, integer}};
constexpr ProtoField kPolicy[] = {
    {"latest", 1, message, kLatest}, {"all", 2, message}, {"specific", 3, message, kSpecific}};
constexpr ProtoField kGroup[] = {{"name", 1}, {"count", 2, integer}, {"kind", 4, device_kind}};
constexpr ProtoField kQueuePolicy[] = {{"default_timeout_microseconds", 2, integer}, {"max_queue_size", 4, integer}};
constexpr ProtoField kBatching[] = {{"max_queue_delay_microseconds", 2, integer},
                                    {"priority_levels", 4, integer},
                                    {"default_priority_level", 5, integer},
                                    {"default_queue_policy", 6, message, kQueuePolicy}};
constexpr ProtoField kParameter[] = {{"string_value", 1}};
constexpr ProtoField kConfig[] = {{"name", 1},
                                  {"platform", 2},
                                  {"version_policy", 3, message, kPolicy},
                                  {"max_batch_size", 4, integer},
                                  {"input", 5, message, kModelInput},
                                  {"output", 6, message, kModelOutput},
                                  {"instance_group", 7, message, kGroup},
                                  {"dynamic_batching", 11, message, kBatching},
                                  {"parameters", 14, map, kParameter},
                                  {"backend", 17}};
constexpr ProtoField kModelConfig[] = {{"config", 1, message, kConfig}};

constexpr ProtoField kIndexRow[] = {{"name", 1}, {"version", 2}, {"state", 3}, {"reason", 4}};
constexpr ProtoField kIndex[] = {{"models", 1, message, kIndexRow}};
constexpr ProtoField kRegion[] = {{"name", 1}, {"key", 2}, {"offset", 3, integer}, {"byte_size", 4, integer}};
constexpr ProtoField kRegions[] = {{"regions", 1, map, kRegion}};
constexpr ProtoField kCudaRegion[] = {{"name", 1}, {"device_id", 2, integer}, {"byte_size", 3, integer}};
constexpr ProtoField kCudaRegions[] = {{"regions", 1, map, kCudaRegion}};

std::string message_of_fields(std::span<const ProtoField> fields, const Json& json);

/// The number of a datatype in config.pbtxt. These numbers have another order than the values of Datatype.
uint64_t number_of_datatype(std::string_view word) {
  constexpr std::string_view kWords[] = {"TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32",
                                         "TYPE_UINT64",  "TYPE_INT8", "TYPE_INT16", "TYPE_INT32",  "TYPE_INT64",
                                         "TYPE_FP16",    "TYPE_FP32", "TYPE_FP64",  "TYPE_STRING", "TYPE_BF16"};
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (kWords[i] == word) return i;
  return 0;
}

void append_value(std::string& to, const ProtoField& field, const Json& value) {
  switch (field.kind) {
    case integer:
      if (value.integer()) append_integer_field(to, field.number, static_cast<uint64_t>(*value.integer()));
      break;
    case text:
      if (value.string()) append_bytes_field(to, field.number, *value.string());
      break;
    case datatype:
      if (value.string()) append_integer_field(to, field.number, number_of_datatype(*value.string()));
      break;
    case device_kind:
      if (value.string()) append_integer_field(to, field.number, *value.string() == "KIND_GPU" ? 1 : 2);
      break;
    case message:
      append_bytes_field(to, field.number, message_of_fields(field.of, value));
      break;
    case map:
      for (const auto& [key, one] : *value.object()) {
        std::string entry;
        append_bytes_field(entry, 1, key);
        append_bytes_field(entry, 2, message_of_fields(field.of, one));
        append_bytes_field(to, field.number, entry);
      }
      break;
  }
}

std::string message_of_fields(std::span<const ProtoField> fields, const Json& json) {
  std::string bytes;
  for (const ProtoField& field : fields) {
    const Json* value = json.find(field.name);
    if (!value) continue;
    if (!value->array())
      append_value(bytes, field, *value);
    else
      for (const Json& one : *value->array()) append_value(bytes, field, one);
  }
  return bytes;
}

}  // namespace

std::string proto_of_json(std::string_view message_name, const Json& json) {
  const struct {
    std::string_view name;
    std::span<const ProtoField> fields;
  } kMessages[] = {{"ServerMetadataResponse", kServerMetadata},
                   {"ModelMetadataResponse", kModelMetadata},
                   {"ModelConfigResponse", kModelConfig},
                   {"ModelStatisticsResponse", kStatistics},
                   {"RepositoryIndexResponse", kIndex},
                   {"SystemSharedMemoryStatusResponse", kRegions},
                   {"CudaSharedMemoryStatusResponse", kCudaRegions}};
  for (const auto& one : kMessages)
    if (one.name == message_name) return message_of_fields(one.fields, json);
  HCTR_EXPECT(false, "unknown message type ", message_name);
  return {};
}

}  // namespace hctr::serve
