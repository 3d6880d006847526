#include "serve/service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/expect.h"
#include "core/device/device.h"
#include "serve/grpc_api.h"
#include "serve/grpc_front.h"
#include "serve/http_api.h"
#include "serve/metrics_page.h"

namespace hctr::serve {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

}  // namespace

Service::Service(const ServeOptions& options) : options_(options) {
  const Log log(options.surroundings.log);
  core_ = std::make_unique<ServeCore>(options);
  api_ = std::make_unique<HttpApi>(*core_, options.limits);
  if (!is_loopback(options.address))
    log.warning("the service listens at ", options.address,
                ", where other machines may reach it: the service checks no passwords and does not encrypt");
  if (const GpuSearch gpus = find_gpus(); options.cuda_shared_memory && gpus.count == 0)
    log.warning("clients cannot register CUDA shared memory: ", gpus.why_none);
  // gRPC first: by HTTP the service is ready when it can be called by gRPC too.
  std::string grpc_state;
  if (options.grpc_port >= 0) {
    if (const std::string why = why_no_grpc(); why.empty()) {
      grpc_api_ = std::make_unique<GrpcApi>(*core_);
      grpc_ = std::make_unique<GrpcFront>(options.address, options.grpc_port, options.limits, grpc_api_->handler());
      grpc_state = cat("gRPC: ", options.address, ":", grpc_->port());
    } else {
      grpc_state = cat("no gRPC: ", why);
    }
  }
  if (options.http_port >= 0) {
    http_ = std::make_unique<HttpServer>(
        options.address, options.http_port, options.http_threads, options.limits,
        [this](HttpRequest request, Respond respond) { api_->handle(std::move(request), std::move(respond)); });
    log.info("HTTP: http://", options.address, ":", http_->port(), "/v2");
  }
  if (!grpc_state.empty()) log.info(grpc_state);
  if (options.metrics_port >= 0) {
    HttpLimits limits = options.limits;
    limits.body_bytes = 1 << 10;
    limits.connections = std::min<int64_t>(limits.connections, 64);
    const auto page = [this](const HttpRequest& request, const Respond& respond) {
      if (request.target != "/metrics") return respond(http_error(404, "Not Found"));
      if (request.method != "GET") return respond(http_error(405, "Method Not Allowed"));
      respond({.type = "text/plain; version=0.0.4; charset=utf-8",
               .body = metrics_page(*core_, http_ ? http_->connections() : 0)});
    };
    metrics_ = std::make_unique<HttpServer>(options.address, options.metrics_port, 1, limits, page);
    log.info("metrics: http://", options.address, ":", metrics_->port(), "/metrics");
  }
}

Service::~Service() {
  // Destroy the front ends first: their threads call the core. Responses that complete later are dropped.
  metrics_.reset();
  http_.reset();
  if (grpc_) grpc_->drain(0);
  core_.reset();  // answers the pending gRPC calls
  grpc_.reset();
}

bool Service::drain() {
  core_->stop();
  const auto begin = Clock::now();
  const bool answered = !http_ || http_->drain(options_.drain_time);
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  if (grpc_) grpc_->drain(std::max<int64_t>(0, (options_.drain_time - passed).count()));
  if (metrics_) (void)metrics_->drain(std::chrono::milliseconds(1000));
  return answered;
}

}  // namespace hctr::serve
