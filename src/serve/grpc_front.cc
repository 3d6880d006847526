#include "serve/grpc_front.h"

#include "core/base/expect.h"
#include "core/base/plugin_file.h"

namespace hctr::serve {

const GrpcPlugin& grpc_plugin() {
  static const GrpcPlugin& plugin = load_plugin<GrpcPlugin>(
      {"gRPC", kGrpcPluginFile, kGrpcPluginEntry, kGrpcPlugin, "gRPC C++", "libgrpc++-dev", "gRPC"});
  return plugin;
}

std::string why_no_grpc() try {
  grpc_plugin();
  return "";
} catch (const Error& error) {
  return error.what();
}

GrpcFront::GrpcFront(const std::string& address, int port, const HttpLimits& limits, GrpcHandler handler)
    : listener_(address, port, limits.connections) {
  GrpcServer* server = nullptr;
  if (const char* problem = grpc_plugin().serve(limits.body_bytes, handler, &server))
    throw Error(Kind::io, cat("cannot listen at ", address, ", port ", port, ", for gRPC: ", problem));
  server_.reset(server);
  listener_.start(*server);
}

void GrpcFront::drain(int64_t ms) {
  listener_.stop();
  server_->drain(ms);
}

std::unique_ptr<GrpcClient> connect_grpc(const std::string& address) {
  GrpcClient* client = nullptr;
  if (const char* problem = grpc_plugin().connect(address.c_str(), &client))
    throw Error(Kind::io, cat("cannot connect to ", address, ": ", problem));
  return std::unique_ptr<GrpcClient>(client);
}

GrpcAnswer call_grpc(GrpcClient& client, const std::string& method, const std::string& request, int64_t timeout_us) {
  GrpcAnswer answer;
  client.call(method.c_str(), {request.data(), static_cast<int64_t>(request.size())}, timeout_us, &answer,
              [](void* self, int status, const char* message, GrpcBytes response) {
                auto& to = *static_cast<GrpcAnswer*>(self);
                to.status = status;
                to.message = message;
                to.response.assign(response.data, static_cast<size_t>(response.size));
              });
  return answer;
}

}  // namespace hctr::serve
