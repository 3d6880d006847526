#include "serve/http_api.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/expect.h"
#include "serve/base64.h"
#include "serve/gzip_body.h"
#include "serve/infer_json.h"

namespace hctr::serve {
namespace {

/// Responses of at least this many bytes are compressed, if the client accepts compressed responses.
constexpr size_t kPackedFrom = 1024;

int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/// Splits a path at its slashes, without the query after '?'.
std::vector<std::string> parts_of(std::string_view target) {
  target = target.substr(0, target.find('?'));
  std::vector<std::string> parts;
  std::string part;
  for (size_t at = 0; at <= target.size(); ++at) {
    if (at == target.size() || target[at] == '/') {
      if (!part.empty()) parts.push_back(std::exchange(part, {}));
    } else if (target[at] == '%') {
      const int high = at + 1 < target.size() ? hex_digit(target[at + 1]) : -1;
      const int low = at + 2 < target.size() ? hex_digit(target[at + 2]) : -1;
      if (high < 0 || low < 0) throw Refusal::invalid("the path has a '%' without two hexadecimal digits after it");
      part += static_cast<char>(high * 16 + low);
      at += 2;
    } else {
      part += target[at];
    }
  }
  return parts;
}

HttpResponse response_of(const Status& status, const std::string& id = {}) {
  if (status.ok()) return {};
  HttpResponse response = http_error(http_status(status.code), status.message);
  if (!id.empty()) response.body = Json(Json::Object{{"error", Json(status.message)}, {"id", Json(id)}}).text();
  return response;
}

void respond_json(const Respond& respond, const Json& json) { respond({.body = json.text()}); }

void expect_method(const HttpRequest& request, const char* method) {
  if (request.method != method) throw HttpResponse(http_error(405, "Method Not Allowed"));
}

/// Parses the body as JSON; the body may be empty.
Json json_body(const HttpRequest& request) {
  if (request.body.find_first_not_of(" \t\r\n") == std::string::npos) return Json(Json::Object{});
  Json json = Json::parse(request.body, "the request");
  if (!json.object()) throw Refusal::invalid("the request must be a JSON object, not ", json.kind());
  return json;
}

}  // namespace

void HttpApi::handle(HttpRequest request, Respond respond) {
  try {
    const std::string_view coding = request.header("content-encoding");
    if (coding == "gzip" || coding == "deflate")
      request.body = unpacked(request.body, limits_.body_bytes);
    else if (!coding.empty() && coding != "identity")
      throw HttpResponse(http_error(415, cat("Content-Encoding '", coding,
                                             "' is not supported: expected gzip or "
                                             "deflate")));
    const bool packs = request.header("accept-encoding").find("gzip") != std::string_view::npos;
    Respond packing = [respond, packs](HttpResponse response) {
      if (packs && response.body.size() >= kPackedFrom) {
        response.body = gzip_packed(response.body);
        response.headers.emplace_back("Content-Encoding", "gzip");
      }
      respond(std::move(response));
    };
    const Path path = parts_of(request.target);
    route(request, path, packing);
  } catch (const HttpResponse& response) {
    respond(response);
  } catch (...) {
    respond(response_of(status_of_current_exception()));
  }
}

void HttpApi::route(HttpRequest& request, const Path& path, const Respond& respond) {
  const auto is = [&](std::initializer_list<const char*> parts) {
    return std::equal(path.begin(), path.end(), parts.begin(), parts.end());
  };
  if (path.empty() || path[0] != "v2") throw HttpResponse(http_error(404, "Not Found"));
  if (is({"v2"})) {
    expect_method(request, "GET");
    return respond_json(respond, core_.server_metadata());
  }
  if (is({"v2", "health", "live"})) {
    expect_method(request, "GET");
    return respond({});
  }
  if (is({"v2", "health", "ready"})) {
    expect_method(request, "GET");
    return respond({.status = core_.ready() ? 200 : 400});
  }
  if (is({"v2", "models", "stats"})) {
    expect_method(request, "GET");
    return respond_json(respond, core_.statistics("", ""));
  }
  if (path.size() >= 3 && path[1] == "models") return route_model(request, path, respond);
  if (path.size() >= 3 && path[1] == "repository") return route_repository(request, path, respond);
  if (path.size() >= 3 && (path[1] == "systemsharedmemory" || path[1] == "cudasharedmemory"))
    return route_regions(request, path, respond);
  throw HttpResponse(http_error(404, "Not Found"));
}

void HttpApi::route_model(HttpRequest& request, const Path& path, const Respond& respond) {
  const std::string& model = path[2];
  std::string version;
  size_t at = 3;
  if (path.size() >= 5 && path[3] == "versions") {
    version = path[4];
    at = 5;
  }
  const std::string call = path.size() == at ? "" : path.size() == at + 1 ? path[at] : "?";
  if (call == "infer") {
    expect_method(request, "POST");
    return infer(request, model, version, respond);
  }
  if (call != "" && call != "ready" && call != "config" && call != "stats")
    throw HttpResponse(http_error(404, "Not Found"));
  expect_method(request, "GET");
  if (call == "ready")
    return core_.model_ready(model, version) ? respond({}) : respond(http_error(400, "Model version not ready"));
  respond_json(respond, call == ""         ? core_.model_metadata(model, version)
                        : call == "config" ? core_.model_config(model, version)
                                           : core_.statistics(model, version));
}

void HttpApi::route_repository(HttpRequest& request, const Path& path, const Respond& respond) {
  if (path.size() == 3 && path[2] == "index") {
    expect_method(request, "POST");
    const Json body = json_body(request);
    const Json* ready = body.find("ready");
    return respond_json(respond, core_.index(ready && ready->boolean() && *ready->boolean()));
  }
  const bool loads = path.size() == 5 && path[2] == "models" && path[4] == "load";
  if (!loads && !(path.size() == 5 && path[2] == "models" && path[4] == "unload"))
    throw HttpResponse(http_error(404, "Not Found"));
  expect_method(request, "POST");
  const Json body = json_body(request);
  const auto done = [respond](const Status& status) { respond(response_of(status)); };
  if (!loads) return core_.unload(path[3], done);
  std::optional<std::string> config;
  if (const Json* parameters = body.find("parameters"); parameters && parameters->object())
    for (const auto& [name, value] : *parameters->object()) {
      if (name != "config") throw Refusal::invalid("load accepts only the parameter 'config'; found '", name, "'");
      if (!value.string())
        throw Refusal::invalid("the parameter 'config' must be a string of JSON; found ", value.kind());
      config = *value.string();
    }
  core_.load(path[3], config, done);
}

void HttpApi::route_regions(HttpRequest& request, const Path& path, const Respond& respond) {
  using Kind = SharedRegion::Kind;
  const Kind kind = path[1] == "cudasharedmemory" ? Kind::cuda : Kind::system;
  const bool named = path.size() == 5 && path[2] == "region";
  const std::string name = named ? path[3] : "", call = named || path.size() == 3 ? path.back() : "?";
  if (call == "status") {
    expect_method(request, "GET");
    return respond_json(respond, core_.regions().status(kind, name));
  }
  if (call == "unregister") {
    expect_method(request, "POST");
    core_.regions().remove(kind, name);
    return respond({});
  }
  if (call != "register" || !named) throw HttpResponse(http_error(404, "Not Found"));
  expect_method(request, "POST");
  kind == Kind::cuda ? register_cuda(name, json_body(request)) : register_system(name, json_body(request));
  respond({});
}

void HttpApi::register_system(const std::string& name, const Json& body) {
  const Json *key = body.find("key"), *offset = body.find("offset"), *bytes = body.find("byte_size");
  if (!key || !key->string() || !bytes || !bytes->integer() || (offset && !offset->integer()))
    throw Refusal::invalid("a region needs 'key', a string, and the integers 'byte_size' and 'offset'");
  core_.regions().add_system(name, *key->string(), offset ? *offset->integer() : 0, *bytes->integer());
}

void HttpApi::register_cuda(const std::string& name, const Json& body) {
  const Json *raw = body.find("raw_handle"), *device = body.find("device_id"), *bytes = body.find("byte_size");
  const Json* const text = raw && raw->object() ? raw->find("b64") : nullptr;
  if (!text || !text->string() || !device || !device->integer() || !bytes || !bytes->integer())
    throw Refusal::invalid(
        "a region needs 'raw_handle', an object with the string 'b64', and the integers 'device_id' and 'byte_size'");
  const std::optional<std::string> handle = from_base64(*text->string());
  if (!handle) throw Refusal::invalid("region '", name, "': 'b64' of 'raw_handle' is not base64");
  core_.regions().add_cuda(name, *handle, *device->integer(), *bytes->integer());
}

InferRequest HttpApi::read_request(HttpRequest& http, const std::string& model, const std::string& version) const {
  const std::shared_ptr<ModelVersion> found = core_.repository().find(model, version, nullptr);
  const auto body = std::make_shared<std::string>(std::move(http.body));
  const std::string_view bytes = *body, header = http.header("inference-header-content-length");
  size_t json_bytes = bytes.size();
  if (!header.empty()) {
    const auto read = std::from_chars(header.data(), header.data() + header.size(), json_bytes);
    if (read.ec != std::errc() || read.ptr != header.data() + header.size() || json_bytes > bytes.size())
      throw Refusal::invalid("Inference-Header-Content-Length is '", header, "'; the body has ", bytes.size(),
                             " bytes");
  }
  if (!header.empty() && json_bytes == 0) {  // the body is the only input, as raw bytes
    InferRequest request{.model = model, .version = version};
    request.inputs.push_back(raw_input(found->config(), bytes));
    request.inputs.back().owner = body;
    request.parameters["binary_data_output"] = true;
    return request;
  }
  InferRequest request = read_infer_json(bytes.substr(0, json_bytes), bytes.substr(json_bytes), body);
  request.model = model;
  request.version = version;
  return request;
}

void HttpApi::infer(HttpRequest& http, const std::string& model, const std::string& version, const Respond& respond) {
  InferRequest request = read_request(http, model, version);
  // The fields of the request that the answer needs, without the tensors.
  const auto asked = std::make_shared<InferRequest>(InferRequest{.model = model, .id = request.id});
  asked->parameters = request.parameters;
  asked->outputs = request.outputs;
  ServeCore& core = core_;
  core_.infer(std::move(request), [asked, respond, &core](const InferResponse& response) {
    try {
      if (!response.status.ok()) return respond(response_of(response.status, response.id));
      std::vector<bool> written;
      for (size_t o = 0; o < response.outputs.size(); ++o)
        written.push_back(o < asked->outputs.size() && core.regions().deliver(asked->outputs[o], response.outputs[o]));
      InferAnswer answer = write_infer_json(*asked, response, written);
      HttpResponse http_response{.body = std::move(answer.body)};
      if (answer.binary) {
        http_response.type = "application/octet-stream";
        http_response.headers.emplace_back("Inference-Header-Content-Length", std::to_string(answer.json_bytes));
      }
      respond(std::move(http_response));
    } catch (...) {
      respond(response_of(status_of_current_exception(), asked->id));
    }
  });
}

}  // namespace hctr::serve
