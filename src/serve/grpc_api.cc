#include "serve/grpc_api.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "serve/infer_message.h"
#include "serve/proto_json.h"
#include "serve/proto_reader.h"

namespace hctr::serve {
namespace {

constexpr std::string_view kInference = "/inference.GRPCInferenceService/", kHealth = "/grpc.health.v1.Health/";
constexpr int kUnimplemented = 12;
struct NoSuchMethod {};

void finish(GrpcCall& call, const Status& status, std::string_view response = {}) {
  call.answer(grpc_status(status.code), status.message.c_str(),
              {response.data(), static_cast<int64_t>(response.size())});
}

/// The text of the field `number` of a message; "" if the field is missing.
std::string text_field(std::string_view message, int number) {
  std::string text;
  for (ProtoReader field(message); field.next();)
    if (field.number() == number) text = field.text();
  return text;
}
uint64_t integer_field(std::string_view message, int number) {
  uint64_t value = 0;
  for (ProtoReader field(message); field.next();)
    if (field.number() == number) value = field.integer();
  return value;
}

std::string flag_message(bool value) {
  std::string bytes;
  if (value) append_integer_field(bytes, 1, 1);
  return bytes;
}

/// A ModelStreamInferResponse message that has `problem`, or `response` if `problem` is empty.
std::string stream_message(const std::string& problem, const std::string& response) {
  std::string bytes;
  problem.empty() ? append_bytes_field(bytes, 2, response) : append_bytes_field(bytes, 1, problem);
  return bytes;
}

}  // namespace

GrpcHandler GrpcApi::handler() {
  return {this, [](void* self, const char* method, GrpcBytes request, int64_t left_us, GrpcCall* call) {
            static_cast<GrpcApi*>(self)->handle(method, request, left_us, std::shared_ptr<GrpcCall>(call));
          }};
}

void GrpcApi::handle(std::string_view method, GrpcBytes bytes, int64_t left_us, std::shared_ptr<GrpcCall> call) {
  const std::string_view request(bytes.data, static_cast<size_t>(bytes.size));
  try {
    if (method.starts_with(kInference)) {
      const std::string_view name = method.substr(kInference.size());
      if (name == "ModelInfer" || name == "ModelStreamInfer")
        return infer(request, left_us, name == "ModelStreamInfer", call);
      if (handle_control(name, request, call)) return;
      return finish(*call, {}, respond(name, request));
    }
    if (method == cat(kHealth, "Check")) {
      const std::string service = text_field(request, 1);
      if (!service.empty() && service != "inference.GRPCInferenceService")
        throw Refusal(Code::not_found, cat("there is no service '", service, "'"));
      std::string response;
      append_integer_field(response, 1, core_.ready() ? 1 : 2);  // 1: SERVING; 2: NOT_SERVING
      return finish(*call, {}, response);
    }
    call->answer(kUnimplemented, cat("the service has no method ", method).c_str(), {});
  } catch (const NoSuchMethod&) {
    call->answer(kUnimplemented, cat("the service has no method ", method).c_str(), {});
  } catch (...) {
    finish(*call, status_of_current_exception());
  }
}

std::string GrpcApi::respond(std::string_view method, std::string_view request) {
  const auto model = [&] { return text_field(request, 1); };
  const auto version = [&] { return text_field(request, 2); };
  if (method == "ServerLive") return flag_message(true);
  if (method == "ServerReady") return flag_message(core_.ready());
  if (method == "ModelReady") return flag_message(core_.model_ready(model(), version()));
  if (method == "ServerMetadata") return proto_of_json("ServerMetadataResponse", core_.server_metadata());
  if (method == "ModelMetadata")
    return proto_of_json("ModelMetadataResponse", core_.model_metadata(model(), version()));
  if (method == "ModelConfig")
    return proto_of_json("ModelConfigResponse", Json(Json::Object{{"config", core_.model_config(model(), version())}}));
  if (method == "ModelStatistics")
    return proto_of_json("ModelStatisticsResponse", core_.statistics(model(), version()));
  if (method == "RepositoryIndex")
    return proto_of_json("RepositoryIndexResponse",
                         Json(Json::Object{{"models", core_.index(integer_field(request, 2) != 0)}}));
  for (const SharedRegion::Kind kind : {SharedRegion::Kind::system, SharedRegion::Kind::cuda}) {
    const std::string_view prefix = kind == SharedRegion::Kind::cuda ? "CudaSharedMemory" : "SystemSharedMemory";
    if (method.starts_with(prefix)) return respond_on_regions(kind, method.substr(prefix.size()), request);
  }
  throw NoSuchMethod{};
}

std::string GrpcApi::respond_on_regions(SharedRegion::Kind kind, std::string_view call, std::string_view request) {
  const bool cuda = kind == SharedRegion::Kind::cuda;
  const std::string name = text_field(request, 1);
  const auto integer = [&](int field) { return static_cast<int64_t>(integer_field(request, field)); };
  SharedRegions& regions = core_.regions();
  if (call == "Status") {
    Json by_name{Json::Object{}};
    const Json list = regions.status(kind, name);
    for (const Json& region : *list.array()) by_name.set(*region.find("name")->string(), region);
    return proto_of_json(cuda ? "CudaSharedMemoryStatusResponse" : "SystemSharedMemoryStatusResponse",
                         Json(Json::Object{{"regions", std::move(by_name)}}));
  }
  if (call == "Unregister")
    regions.remove(kind, name);
  else if (call == "Register" && cuda)
    regions.add_cuda(name, text_field(request, 2), integer(3), integer(4));
  else if (call == "Register")
    regions.add_system(name, text_field(request, 2), integer(3), integer(4));
  else
    throw NoSuchMethod{};
  return {};
}

bool GrpcApi::handle_control(std::string_view method, std::string_view request, const std::shared_ptr<GrpcCall>& call) {
  const bool loads = method == "RepositoryModelLoad";
  if (!loads && method != "RepositoryModelUnload") return false;
  const auto done = [call](const Status& status) { finish(*call, status); };
  std::optional<std::string> config;
  for (ProtoReader field(request); loads && field.next();) {
    if (field.number() != 3) continue;
    if (text_field(field.bytes(), 1) != "config")
      throw Refusal::invalid("load accepts only the parameter 'config', a string of JSON; found '",
                             text_field(field.bytes(), 1), "'");
    config = text_field(text_field(field.bytes(), 2), 3);
  }
  loads ? core_.load(text_field(request, 2), config, done) : core_.unload(text_field(request, 2), done);
  return true;
}

void GrpcApi::infer(std::string_view bytes, int64_t left_us, bool in_stream, const std::shared_ptr<GrpcCall>& call) {
  const auto fail = [in_stream](GrpcCall& to, const Status& status) {
    in_stream ? finish(to, {}, stream_message(status.message, "")) : finish(to, status);
  };
  try {
    InferRequest request = read_infer_message(bytes, call);
    if (left_us >= 0) request.deadline = request.arrived + std::chrono::microseconds(left_us);
    // `call` stays valid: the callback below owns it.
    request.cancelled = [of = call.get()] { return of->cancelled(); };
    const bool to_regions = std::ranges::any_of(
        request.outputs, [](const WantedOutput& output) { return output.parameters.contains("shared_memory_region"); });
    const auto wanted = to_regions ? request.outputs : std::vector<WantedOutput>();
    SharedRegions& regions = core_.regions();
    core_.infer(std::move(request), [wanted, call, &regions, fail, in_stream](const InferResponse& response) {
      try {
        if (!response.status.ok()) return fail(*call, response.status);
        std::vector<bool> written;
        for (size_t o = 0; o < std::min(wanted.size(), response.outputs.size()); ++o)
          written.push_back(regions.deliver(wanted[o], response.outputs[o]));
        const std::string message = write_infer_message(wanted, response, written);
        finish(*call, {}, in_stream ? stream_message("", message) : message);
      } catch (...) {
        fail(*call, status_of_current_exception());
      }
    });
  } catch (...) {
    fail(*call, status_of_current_exception());
  }
}

}  // namespace hctr::serve
