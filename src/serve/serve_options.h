// What the service is told when it starts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hctr/solver.h"
#include "hctr/surroundings.h"
#include "serve/batch_scheduler.h"

namespace hctr::serve {

/// When models are loaded: all at the start and never again; all, and again where their files change; those that a
/// client loads.
enum class ModelControl { none, poll, on_request };

struct HttpLimits {
  int64_t header_bytes = 64 << 10, body_bytes = 64 << 20;
  int64_t connections = 1024;                     ///< at a time; another one is answered with 503
  std::chrono::milliseconds request_time{30000};  ///< for a request to arrive, plus a second for each 16 KiB
  std::chrono::milliseconds idle_time{75000};     ///< between requests of a connection
  std::chrono::milliseconds write_time{30000};    ///< without progress of an answer
};

struct ServeOptions {
  /// Folders of models as Triton has them, and models: a run folder, a checkpoint, a prefix, or NAME=one of these.
  std::vector<std::string> sources;
  ModelControl control = ModelControl::none;
  std::vector<std::string> load{};  ///< with on_request: models to load at the start; "*": all
  std::chrono::milliseconds poll_time{15000};
  std::string address = "127.0.0.1";
  int http_port = 8000, grpc_port = 8001, metrics_port = 8002;  ///< 0: any free port; negative: no such service
  int http_threads = 2;
  HttpLimits limits{};
  std::chrono::milliseconds drain_time{30000};  ///< for requests that run when the service ends
  /// A store.json or a ps.json: models of the service that have a model of the same name there take their tables from
  /// its active version. Empty: every model has its own tables.
  std::string store{};
  bool shared_memory = false;  ///< clients may name regions of it
  DeviceChoice device = DeviceChoice::automatic;
  std::optional<int> threads{};  ///< of a CPU, for each batch
  std::optional<int> instances{};
  ScheduleOptions schedule{};
  Surroundings surroundings{};
};

}  // namespace hctr::serve
