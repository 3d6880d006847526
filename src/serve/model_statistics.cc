#include "serve/model_statistics.h"

#include <bit>

namespace hctr::serve {

void ModelStatistics::add_pending(int64_t change) {
  const std::lock_guard lock(mutex_);
  now_.pending += change;
}

void ModelStatistics::add_success(const StageTimes& times, int64_t samples) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(mutex_);
  now_.last_inference_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  now_.inferences += samples;
  now_.success.add(times.total);
  now_.queue.add(times.queue);
  now_.input.add(times.input);
  now_.infer.add(times.infer);
  now_.output.add(times.output);
}

void ModelStatistics::add_failure(Code code, std::chrono::nanoseconds total) {
  const std::lock_guard lock(mutex_);
  now_.fail.add(total);
  ++now_.failures[static_cast<size_t>(code)];
}

void ModelStatistics::add_batch(int64_t samples, std::chrono::nanoseconds input, std::chrono::nanoseconds infer,
                                std::chrono::nanoseconds output) {
  const std::lock_guard lock(mutex_);
  ++now_.executions;
  auto& batch = now_.batches[static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(samples)))];
  batch.input.add(input);
  batch.infer.add(infer);
  batch.output.add(output);
}

StatisticsView ModelStatistics::view() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

}  // namespace hctr::serve
