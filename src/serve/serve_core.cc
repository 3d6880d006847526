#include "serve/serve_core.h"

#include <algorithm>
#include <utility>

#include "core/base/build_info.h"
#include "core/base/expect.h"
#include "core/base/platform.h"

namespace hctr::serve {
namespace {

Json tensors_json(const ModelConfig& config, const std::vector<TensorDescription>& all) {
  Json list{Json::Array{}};
  for (const TensorDescription& one : all) {
    Json shape{Json::Array{}};
    for (const int64_t size : shape_in_metadata(config, one)) shape.add(size);
    Json tensor{Json::Object{}};
    tensor.set("name", one.name).set("datatype", std::string(word_of(one.type))).set("shape", std::move(shape));
    list.add(std::move(tensor));
  }
  return list;
}

Json json_of(const CountAndTime& stage) {
  return Json(Json::Object{{"count", Json(stage.count)}, {"ns", Json(stage.ns)}});
}

Json json_of(const std::string& model, int64_t number, const StatisticsView& view) {
  Json stages{Json::Object{}};
  stages.set("success", json_of(view.success)).set("fail", json_of(view.fail)).set("queue", json_of(view.queue));
  stages.set("compute_input", json_of(view.input)).set("compute_infer", json_of(view.infer));
  stages.set("compute_output", json_of(view.output)).set("cache_hit", json_of(CountAndTime{}));
  stages.set("cache_miss", json_of(CountAndTime{}));
  Json batches{Json::Array{}};
  for (const auto& [samples, times] : view.batches) {
    Json batch{Json::Object{}};
    batch.set("batch_size", samples).set("compute_input", json_of(times.input));
    batch.set("compute_infer", json_of(times.infer)).set("compute_output", json_of(times.output));
    batches.add(std::move(batch));
  }
  Json json{Json::Object{}};
  json.set("name", model).set("version", std::to_string(number)).set("last_inference", view.last_inference_ms);
  json.set("inference_count", view.inferences).set("execution_count", view.executions);
  json.set("inference_stats", std::move(stages)).set("batch_stats", std::move(batches));
  json.set("memory_usage", Json(Json::Array{})).set("response_stats", Json(Json::Object{}));
  return json;
}

}  // namespace

ServeCore::ServeCore(const ServeOptions& options)
    : options_(options),
      store_(options.store.empty() ? nullptr : std::make_unique<ServedStore>(options.store, options.surroundings)),
      repository_(options, store_.get()),
      regions_({.system = options.shared_memory, .cuda = options.cuda_shared_memory}) {
  repository_.load_first();
  const auto idle = [this] {
    repository_.drain();
    if (options_.control != ModelControl::poll || Clock::now() - polled_ < options_.poll_time) return;
    repository_.poll();
    repository_.drain();
    polled_ = Clock::now();
  };
  control_ = std::make_unique<ControlThread>(idle, std::min(options.poll_time, std::chrono::milliseconds(1000)));
}

ServeCore::~ServeCore() = default;

bool ServeCore::ready() const { return !stops_ && repository_.ready(); }

void ServeCore::infer(InferRequest request, Answer answer) {
  std::shared_ptr<ModelVersion> version;
  try {
    int64_t number = 0;
    version = repository_.find(request.model, request.version, &number);
    request.version = std::to_string(number);
    regions_.attach(request);
    int64_t bytes = 0;
    for (const NamedTensor& input : request.inputs) bytes += std::ssize(input.data);
    if (bytes > HttpLimits::kSmallRequest) {
      answer = [this, bytes, answer = std::move(answer)](InferResponse response) {
        answer(std::move(response));
        input_bytes_ -= bytes;
      };
      const int64_t before = input_bytes_.fetch_add(bytes);
      if (before > 0 && before + bytes > options_.limits.total_bytes())
        throw Refusal(Code::unavailable, cat("the inputs of waiting requests take ", before,
                                             " bytes: retry later, or start the service with a larger --max-body"));
    }
  } catch (...) {
    return answer(response_to(request, status_of_current_exception()));
  }
  version->submit(std::move(request), std::move(answer));
}

void ServeCore::load(std::string model, std::optional<std::string> config, Done done) {
  if (options_.control != ModelControl::on_request)
    return done({Code::invalid,
                 "explicit model load / unload is not allowed if polling is enabled or models are fixed: "
                 "start the service with --model-control explicit"});
  control_->post([this, model = std::move(model), config = std::move(config), done = std::move(done)] {
    Status status;
    try {
      repository_.load(model, config);
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  });
}

void ServeCore::unload(std::string model, Done done) {
  if (options_.control != ModelControl::on_request)
    return done({Code::invalid,
                 "explicit model load / unload is not allowed if polling is enabled or models are fixed: "
                 "start the service with --model-control explicit"});
  control_->post([this, model = std::move(model), done = std::move(done)] {
    Status status;
    try {
      repository_.unload(model);
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  });
}

Json ServeCore::server_metadata() const {
  Json extensions{Json::Array{}};
  for (const char* name : {"model_repository", "schedule_policy", "model_configuration", "system_shared_memory",
                           "cuda_shared_memory", "binary_tensor_data", "parameters", "statistics"}) {
    const std::string_view extension = name;
    const bool off = (extension == "system_shared_memory" && !options_.shared_memory) ||
                     (extension == "cuda_shared_memory" && !(options_.cuda_shared_memory && kCudaBuild));
    if (!off) extensions.add(name);
  }
  Json json{Json::Object{}};
  json.set("name", "huge_ctr").set("version", std::string(version()));
  json.set("extensions", std::move(extensions));
  return json;
}

Json ServeCore::model_metadata(const std::string& model, const std::string& version) const {
  const std::shared_ptr<ModelVersion> found = repository_.find(model, version, nullptr);
  const ModelConfig& config = found->config();
  Json versions{Json::Array{}}, json{Json::Object{}};
  for (const auto& [number, one] : repository_.versions(model)) versions.add(std::to_string(number));
  json.set("name", model).set("versions", std::move(versions)).set("platform", config.platform);
  json.set("inputs", tensors_json(config, config.inputs)).set("outputs", tensors_json(config, config.outputs));
  return json;
}

Json ServeCore::model_config(const std::string& model, const std::string& version) const {
  const std::shared_ptr<ModelVersion> found = repository_.find(model, version, nullptr);
  Json json = json_of(found->config(), found->instances(), found->model().on_gpu());
  Json columns{Json::Array{}};
  for (const RequestColumn& column : found->reader().columns())
    if (column.use != RequestColumn::Use::ignored) columns.add(column.name);
  if (!columns.array()->empty()) json.set("columns", std::move(columns));
  Json embeddings{Json::Array{}};
  for (const std::string& name : found->outputs().vectors()) embeddings.add(name);
  if (!embeddings.array()->empty()) json.set("embeddings", std::move(embeddings));
  return json;
}

bool ServeCore::model_ready(const std::string& model, const std::string& version) const {
  try {
    (void)repository_.find(model, version, nullptr);
    return !stops_;
  } catch (const Refusal& refusal) {
    if (refusal.status().code == Code::not_found) return false;
    throw;
  }
}

Json ServeCore::statistics(const std::string& model, const std::string& version) const {
  Json list{Json::Array{}};
  if (!model.empty()) {
    int64_t number = 0;
    const std::shared_ptr<ModelVersion> found = repository_.find(model, version, &number);
    for (const auto& [one, loaded] : repository_.versions(model))
      if (version.empty() || one == number) list.add(json_of(model, one, loaded->statistics().view()));
  } else {
    for (const std::string& name : repository_.models())
      for (const auto& [number, loaded] : repository_.versions(name))
        list.add(json_of(name, number, loaded->statistics().view()));
  }
  return Json(Json::Object{{"model_stats", std::move(list)}});
}

Json ServeCore::index(bool ready_only) const {
  Json list{Json::Array{}};
  for (const IndexRow& row : repository_.index(ready_only)) {
    Json one{Json::Object{}};
    one.set("name", row.name);
    if (!row.version.empty()) one.set("version", row.version);
    if (row.state) one.set("state", std::string(word_of(*row.state)));
    if (!row.reason.empty()) one.set("reason", row.reason);
    list.add(std::move(one));
  }
  return list;
}

}  // namespace hctr::serve
