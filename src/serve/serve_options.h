// The options of the service.
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

/// When models are loaded. none: all models, once, at the start. poll: additionally whenever their files change.
/// on_request: when a client requests the model.
enum class ModelControl { none, poll, on_request };

struct HttpLimits {
  int64_t header_bytes = 64 << 10, body_bytes = 64 << 20;
  /// maximum open HTTP connections, and maximum open gRPC connections; further HTTP connections get 503, further gRPC
  /// connections are closed
  int64_t connections = 1024;
  /// Maximum memory of all requests until they are answered, and of answers until they are read. If a further request
  /// or answer would exceed this limit, the client gets 503, unless the request or answer is small.
  int64_t total_bytes() const { return 16 * body_bytes; }
  /// Requests and answers of at most this size are not limited by total_bytes().
  static constexpr int64_t kSmallRequest = 16 << 10;
  /// The time limit of a request or response restarts after each transfer of this many bytes.
  static constexpr int64_t kProgress = 512 << 10;
  std::chrono::milliseconds request_time{30000};  ///< time limit for receiving a request
  std::chrono::milliseconds idle_time{75000};     ///< limit for an idle connection
  std::chrono::milliseconds write_time{30000};    ///< time limit for sending a response
};

struct ServeOptions {
  /// Model repositories in Triton's layout, and models: a run folder, a checkpoint or a prefix, optionally as
  /// NAME=PATH.
  std::vector<std::string> sources;
  ModelControl control = ModelControl::none;
  std::vector<std::string> load{};  ///< with on_request: models to load at the start; "*": all
  std::chrono::milliseconds poll_time{15000};
  std::string address = "127.0.0.1";
  int http_port = 8000, grpc_port = 8001, metrics_port = 8002;  ///< 0: any free port; negative: disabled
  int http_threads = 2;
  HttpLimits limits{};
  std::chrono::milliseconds drain_time{30000};  ///< time limit for pending requests when the service ends
  /// Path of a store.json or ps.json. If the store has a model of the same name, a model of the service takes its
  /// tables from the store's active version. Empty: every model has its own tables.
  std::string store{};
  bool shared_memory = false;       ///< whether clients may register regions of system shared memory
  bool cuda_shared_memory = false;  ///< whether clients may register regions of GPU memory
  DeviceChoice device = DeviceChoice::automatic;
  std::optional<int> threads{};  ///< CPU threads per batch
  std::optional<int> instances{};
  ScheduleOptions schedule{};
  Surroundings surroundings{};
};

}  // namespace hctr::serve
