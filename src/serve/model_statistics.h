// Counters and times of requests for one version of a model.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

#include "serve/serve_status.h"

namespace hctr::serve {

struct CountAndTime {
  int64_t count = 0, ns = 0;
  void add(std::chrono::nanoseconds time) {
    ++count;
    ns += time.count();
  }
};

/// Times of the stages of one request.
struct StageTimes {
  std::chrono::nanoseconds total{}, queue{}, input{}, infer{}, output{};
};

struct StatisticsView {
  int64_t last_inference_ms = 0, inferences = 0, executions = 0, pending = 0;
  CountAndTime success, fail, queue, input, infer, output;
  std::array<int64_t, 8> failures{};  ///< by Code
  struct Batches {
    CountAndTime input, infer, output;
  };
  std::map<int64_t, Batches> batches;  ///< by batch size, rounded up to a power of two
};

/// Thread-safe.
class ModelStatistics {
 public:
  void add_pending(int64_t change);
  void add_success(const StageTimes&, int64_t samples);
  void add_failure(Code, std::chrono::nanoseconds total);
  void add_batch(int64_t samples, std::chrono::nanoseconds input, std::chrono::nanoseconds infer,
                 std::chrono::nanoseconds output);
  StatisticsView view() const;

 private:
  mutable std::mutex mutex_;
  StatisticsView now_;
};

}  // namespace hctr::serve
