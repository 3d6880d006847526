// huge_ctr serve: serves models over HTTP and gRPC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hctr/solver.h"
#include "program/command_line.h"

namespace hctr {

class ServeCommand {
 public:
  /// Adds the command's own options. Must outlive parse().
  explicit ServeCommand(CommandLine&);

  /// Serves until SIGTERM or SIGINT, then answers pending requests. Returns the exit code. Errors: those of loading the
  /// models and of opening the ports.
  int run(const std::vector<std::string>& sources, const TrainOptions&);

 private:
  std::string control_ = "none", address_ = "127.0.0.1", store_;
  std::vector<std::string> load_;
  int http_port_ = 8000, grpc_port_ = 8001, metrics_port_ = 8002, http_threads_ = 2;
  std::optional<int> instances_;
  double poll_seconds_ = 15, exit_timeout_ = 30;
  int64_t batch_delay_ = 0, max_batch_ = 65536, max_queue_ = 4096, queue_timeout_ = 0, max_body_ = 64,
          max_connections_ = 1024;
  bool shared_memory_ = false, cuda_shared_memory_ = false, verify_ = false;
};

}  // namespace hctr
