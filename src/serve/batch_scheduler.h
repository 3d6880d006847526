// Joins requests for one version of a model into batches, and scores them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "infer/served_model.h"
#include "serve/infer_request.h"
#include "serve/model_statistics.h"
#include "serve/request_samples.h"

namespace hctr::serve {

struct ScheduleOptions {
  int instances = 1;                    ///< batches that are scored at a time
  int64_t most_samples = 65536;         ///< of a batch; a larger request is a batch of its own
  int64_t most_queued = 4096;           ///< requests that wait; another one is refused
  std::chrono::microseconds delay{0};   ///< that a request waits for others, where no batch is being scored
  std::chrono::microseconds timeout{};  ///< of requests that state none; 0: without
  int64_t priority_levels = 3, default_priority = 2;  ///< 1: the first
};

/// A request alone and in any batch gets the same scores: bit for bit on a CPU. Requests of one priority are taken in
/// their order, those of a smaller number first.
class BatchScheduler {
 public:
  /// All outlive it.
  BatchScheduler(ServedModel&, const RequestSamples&, ModelStatistics&, const ScheduleOptions&);
  /// Scores what waits, then ends.
  ~BatchScheduler();
  BatchScheduler(const BatchScheduler&) = delete;
  BatchScheduler& operator=(const BatchScheduler&) = delete;

  /// Answers at once where the queue is full. `answer` is called by this thread or another.
  void submit(InferRequest, Answer);
  int64_t waiting() const;

 private:
  struct Job {
    InferRequest request;
    Answer answer;
    SampleArrays samples{};
    Clock::time_point taken{}, read{};
  };
  using Jobs = std::vector<std::unique_ptr<Job>>;
  void serve_batches();
  std::unique_ptr<Job> take_first();
  /// The next request that waits, for a batch that has `samples`, until `until`.
  std::unique_ptr<Job> take_more(int64_t samples, Clock::time_point until);
  std::unique_ptr<Job> pop();
  /// Reads its inputs. Answers and returns false where it is refused, too late, or not wanted any more.
  bool prepare(Job&);
  void score(Jobs&);
  void score_alone(Jobs&, const Status&);
  void succeed(Job&, int64_t first, const std::vector<std::vector<float>>& scores, StageTimes);
  void fail(Job&, Status);
  std::vector<OutputView> score_samples(const SampleArrays&, std::vector<std::vector<float>>& memory);

  ServedModel& model_;
  const RequestSamples& reader_;
  ModelStatistics& statistics_;
  ScheduleOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::map<int64_t, std::deque<std::unique_ptr<Job>>> queues_;  // by priority
  int64_t waiting_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hctr::serve
