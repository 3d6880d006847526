#include "serve/model_config.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "config/problems.h"
#include "core/base/expect.h"

namespace hctr::serve {
namespace {

/// The fields of a message by name. Error messages name the field and its location.
class MessageFields {
 public:
  MessageFields(const Json& message, std::string where) : message_(message), where_(std::move(where)) {
    if (!message.object()) throw Error(Kind::config, cat(where_, " must be a message, not ", message.kind()));
  }
  [[noreturn]] void fail(const std::string& field, const std::string& expected, const Json& value) const {
    throw Error(Kind::config, cat(where_, ": '", field, "' must be ", expected, ", not ", value.kind()));
  }
  const Json* find(const std::string& field) const { return message_.find(field); }
  std::optional<int64_t> integer(const std::string& field, int64_t low, int64_t high) const {
    const Json* value = find(field);
    if (!value) return std::nullopt;
    const std::optional<int64_t> number = integer_of(*value);
    if (!number) fail(field, "an integer", *value);
    if (*number < low || *number > high)
      throw Error(Kind::config, cat(where_, ": '", field, "' is ", *number, "; expected ", low, " to ", high));
    return number;
  }
  std::optional<std::string> text(const std::string& field) const {
    const Json* value = find(field);
    if (!value) return std::nullopt;
    if (!value->string()) fail(field, "a text", *value);
    return *value->string();
  }
  /// The values of a repeated field; a single value is a list of length one.
  std::vector<const Json*> list(const std::string& field) const {
    std::vector<const Json*> values;
    const Json* value = find(field);
    if (value && value->array())
      for (const Json& one : *value->array()) values.push_back(&one);
    else if (value)
      values.push_back(value);
    return values;
  }
  std::optional<MessageFields> message(const std::string& field) const {
    const Json* value = find(field);
    return value ? std::optional<MessageFields>(std::in_place, *value, cat(where_, ": '", field, "'")) : std::nullopt;
  }
  void expect_known(const std::vector<std::string>& known) const {
    for (const auto& [name, value] : *message_.object())
      if (std::ranges::find(known, name) == known.end())
        throw Error(Kind::config, cat(where_, " has no field '", name, "'", did_you_mean(name, known)));
  }
  const std::string& where() const { return where_; }
  /// Reads an integer; the JSON of Protocol Buffers writes 64-bit integers as strings.
  static std::optional<int64_t> integer_of(const Json& value) {
    if (value.integer()) return *value.integer();
    int64_t number = 0;
    if (!value.string()) return std::nullopt;
    const char* end = value.string()->data() + value.string()->size();
    const auto read = std::from_chars(value.string()->data(), end, number);
    return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
  }

 private:
  const Json& message_;
  std::string where_;
};

std::vector<TensorDescription> read_tensors(const MessageFields& config, const std::string& field) {
  std::vector<TensorDescription> tensors;
  for (const Json* one : config.list(field)) {
    const MessageFields tensor(*one, cat(config.where(), ": '", field, "' ", tensors.size()));
    tensor.expect_known({"name", "data_type", "dims", "format", "reshape", "is_shape_tensor", "allow_ragged_batch",
                         "optional", "label_filename", "is_non_linear_format_io"});
    const std::string name = tensor.text("name").value_or(""), type = tensor.text("data_type").value_or("");
    const std::optional<Datatype> datatype = datatype_of_config(type);
    if (name.empty()) throw Error(Kind::config, cat(tensor.where(), " has no 'name'"));
    if (!datatype)
      throw Error(Kind::config, cat(tensor.where(), ": 'data_type' is '", type,
                                    "'; expected one such as "
                                    "TYPE_FP32"));
    TensorDescription described{name, *datatype, {}};
    for (const Json* dim : tensor.list("dims")) {
      const auto size = MessageFields::integer_of(*dim);
      if (!size || *size < -1) tensor.fail("dims", "a list of sizes, with -1 for any size", *dim);
      described.shape.push_back(*size);
    }
    tensors.push_back(std::move(described));
  }
  return tensors;
}

void read_version_policy(const MessageFields& policy, ModelConfig& config) {
  policy.expect_known({"latest", "all", "specific"});
  if (const auto latest = policy.message("latest"))
    config.newest_versions = latest->integer("num_versions", 1, 1000).value_or(1);
  if (policy.find("all")) config.newest_versions = 0;
  if (const auto specific = policy.message("specific")) {
    config.newest_versions = 0;
    for (const Json* one : specific->list("versions")) {
      const auto version = MessageFields::integer_of(*one);
      if (!version) specific->fail("versions", "a list of integers", *one);
      config.versions.push_back(*version);
    }
  }
}

void read_batching(const MessageFields& batching, ScheduleOptions& schedule) {
  constexpr int64_t kMinute = 60'000'000;
  batching.expect_known({"preferred_batch_size", "max_queue_delay_microseconds", "preserve_ordering", "priority_levels",
                         "default_priority_level", "default_queue_policy", "priority_queue_policy"});
  if (const auto delay = batching.integer("max_queue_delay_microseconds", 0, kMinute))
    schedule.delay = std::chrono::microseconds(*delay);
  schedule.priority_levels = batching.integer("priority_levels", 0, 1'000'000).value_or(schedule.priority_levels);
  schedule.default_priority =
      batching.integer("default_priority_level", 0, 1'000'000)
          .value_or(std::min(schedule.default_priority, std::max<int64_t>(schedule.priority_levels, 1)));
  if (const auto policy = batching.message("default_queue_policy")) {
    policy->expect_known(
        {"timeout_action", "default_timeout_microseconds", "allow_timeout_override", "max_queue_size"});
    if (const auto timeout = policy->integer("default_timeout_microseconds", 0, 1000 * kMinute))
      schedule.timeout = std::chrono::microseconds(*timeout);
    if (const auto most = policy->integer("max_queue_size", 0, 1 << 30); most && *most > 0)
      schedule.most_queued = *most;
  }
}

void read_parameters(const MessageFields& fields, ModelConfig& config) {
  const Json* given = fields.find("parameters");
  if (!given) return;
  const auto add = [&](const std::string& key, const Json& value) {
    const Json* text = value.object() ? value.find("string_value") : &value;
    if (!text || !text->string())
      fields.fail("parameters", "texts: { key: \"x\" value { string_value: \"y\" } }", value);
    config.parameters[key] = *text->string();
  };
  if (given->object() && !given->find("key")) {  // a map in JSON is an object
    for (const auto& [key, value] : *given->object()) add(key, value);
    return;
  }
  for (const Json* one : fields.list("parameters")) {
    const Json *key = one->find("key"), *value = one->find("value");
    if (!key || !key->string() || !value) fields.fail("parameters", "a list of entries with 'key' and 'value'", *one);
    add(*key->string(), *value);
  }
}

}  // namespace

ModelConfig read_model_config(const Json& json, const std::string& where, const ScheduleOptions& defaults) {
  ModelConfig config;
  config.schedule = defaults;
  const MessageFields fields(json, where);
  const std::vector<std::string> without_effect = {"optimization",
                                                   "cc_model_filenames",
                                                   "metric_tags",
                                                   "model_repository_agents",
                                                   "response_cache",
                                                   "model_operations",
                                                   "model_transaction_policy",
                                                   "default_model_filename",
                                                   "runtime",
                                                   "model_warmup",
                                                   "model_metrics",
                                                   "batch_input",
                                                   "batch_output"};
  std::vector<std::string> known = {"name",  "platform", "backend",        "version_policy",   "max_batch_size",
                                    "input", "output",   "instance_group", "dynamic_batching", "parameters"};
  known.insert(known.end(), without_effect.begin(), without_effect.end());
  for (const char* other : {"sequence_batching", "ensemble_scheduling"})
    if (fields.find(other)) throw Error(Kind::config, cat(where, ": '", other, "' is not supported by this server"));
  fields.expect_known(known);
  for (const std::string& name : without_effect) {
    const Json* value = fields.find(name);
    const bool empty = !value || (value->array() && value->array()->empty()) ||
                       (value->object() && value->object()->empty()) || (value->string() && value->string()->empty());
    if (!empty) config.notes.push_back(cat(where, ": '", name, "' has no effect"));
  }
  config.name = fields.text("name").value_or("");
  config.max_batch_size = fields.integer("max_batch_size", 0, 1 << 30);
  config.inputs = read_tensors(fields, "input");
  config.outputs = read_tensors(fields, "output");
  if (const auto policy = fields.message("version_policy")) read_version_policy(*policy, config);
  for (const Json* one : fields.list("instance_group")) {
    const MessageFields group(*one, cat(where, ": 'instance_group'"));
    config.instances = config.instances.value_or(0) + group.integer("count", 0, 1024).value_or(1);
  }
  if (config.instances == 0) config.instances.reset();
  if (const auto batching = fields.message("dynamic_batching")) read_batching(*batching, config.schedule);
  read_parameters(fields, config);
  return config;
}

void complete_model_config(ModelConfig& config, const RequestSamples& reader, ModelOutputs& outputs) {
  const bool batches = config.max_batch_size ? *config.max_batch_size > 0 : reader.samples_lead();
  if (!config.max_batch_size) config.max_batch_size = batches ? config.schedule.most_samples : 0;
  if (batches) config.schedule.most_samples = std::min(config.schedule.most_samples, *config.max_batch_size);
  const auto without_batch = [&](std::vector<int64_t> shape) {
    if (batches && !shape.empty()) shape.erase(shape.begin());
    return shape;
  };
  std::vector<std::string> known = {"DES", "CATCOLUMN", "ROWINDEX", "KEYS", "NUMKEYS"};
  for (const TensorDescription& input : reader.inputs()) known.push_back(input.name);
  for (const RequestColumn& column : reader.columns()) known.push_back(column.name);
  const std::string where = cat("config of model '", config.name, "'");
  for (const TensorDescription& one : config.inputs)
    if (std::ranges::find(known, one.name) == known.end())
      throw Error(Kind::config, cat(where, ": the model has no input '", one.name, "'", did_you_mean(one.name, known)));
  if (!config.outputs.empty()) outputs.offer_only(config.outputs, batches, where);
  if (config.inputs.empty())
    for (const TensorDescription& input : reader.inputs())
      config.inputs.push_back({input.name, input.type, without_batch(input.shape)});
  if (config.outputs.empty())
    for (const ServedOutput* output : outputs.listed())
      config.outputs.push_back({output->name, Datatype::f32, without_batch(output->shape)});
}

NamedTensor raw_input(const ModelConfig& config, std::string_view bytes) {
  if (config.inputs.size() != 1)
    throw Refusal::invalid("raw binary data needs a model with one input, but model '", config.name, "' has ",
                           config.inputs.size());
  const TensorDescription& input = config.inputs[0];
  NamedTensor tensor{.name = input.name, .type = input.type, .shape = input.shape, .data = bytes};
  const auto free = std::ranges::count(tensor.shape, -1);
  if (free > 1 || size_of(input.type) == 0)
    throw Refusal::invalid("raw binary data needs an input of numbers with at most one variable size");
  int64_t others = static_cast<int64_t>(size_of(input.type));
  for (const int64_t size : tensor.shape) others *= size == -1 ? 1 : size;
  if (free == 1 && others > 0) *std::ranges::find(tensor.shape, -1) = static_cast<int64_t>(bytes.size()) / others;
  if (config.max_batch_size.value_or(0) > 0) tensor.shape.insert(tensor.shape.begin(), 1);
  return tensor;
}

std::vector<int64_t> shape_in_metadata(const ModelConfig& config, const TensorDescription& tensor) {
  std::vector<int64_t> shape = tensor.shape;
  if (config.max_batch_size.value_or(0) > 0) shape.insert(shape.begin(), -1);
  return shape;
}

Json json_of(const ModelConfig& config, int instances, bool on_gpu) {
  const auto tensors = [](const std::vector<TensorDescription>& all) {
    Json list{Json::Array{}};
    for (const TensorDescription& one : all) {
      Json dims{Json::Array{}};
      for (const int64_t size : one.shape) dims.add(size);
      Json tensor{Json::Object{}};
      tensor.set("name", one.name).set("data_type", config_word_of(one.type)).set("dims", std::move(dims));
      list.add(std::move(tensor));
    }
    return list;
  };
  Json json{Json::Object{}}, parameters{Json::Object{}}, batching{Json::Object{}}, group{Json::Object{}};
  for (const auto& [key, value] : config.parameters)
    parameters.set(key, Json(Json::Object{{"string_value", Json(value)}}));
  batching.set("max_queue_delay_microseconds", config.schedule.delay.count());
  batching.set("priority_levels", config.schedule.priority_levels);
  batching.set("default_priority_level", config.schedule.default_priority);
  batching.set("default_queue_policy",
               Json(Json::Object{{"default_timeout_microseconds", Json(int64_t{config.schedule.timeout.count()})},
                                 {"max_queue_size", Json(config.schedule.most_queued)}}));
  group.set("name", cat(config.name, "_0")).set("kind", on_gpu ? "KIND_GPU" : "KIND_CPU").set("count", instances);
  Json policy{Json::Object{}};
  if (config.newest_versions > 0) {
    policy.set("latest", Json(Json::Object{{"num_versions", Json(config.newest_versions)}}));
  } else if (config.versions.empty()) {
    policy.set("all", Json(Json::Object{}));
  } else {
    Json versions{Json::Array{}};
    for (const int64_t version : config.versions) versions.add(version);
    policy.set("specific", Json(Json::Object{{"versions", std::move(versions)}}));
  }
  json.set("name", config.name).set("platform", config.platform).set("backend", config.backend);
  json.set("version_policy", std::move(policy));
  json.set("max_batch_size", config.max_batch_size.value_or(0));
  json.set("input", tensors(config.inputs)).set("output", tensors(config.outputs));
  json.set("dynamic_batching", std::move(batching)).set("instance_group", Json(Json::Array{std::move(group)}));
  json.set("parameters", std::move(parameters));
  return json;
}

}  // namespace hctr::serve
