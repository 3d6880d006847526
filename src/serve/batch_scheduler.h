// Batches requests for one version of a model, and scores the batches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "infer/served_model.h"
#include "serve/batch_results.h"
#include "serve/infer_request.h"
#include "serve/model_outputs.h"
#include "serve/model_statistics.h"
#include "serve/request_samples.h"
#include "serve/unseen_keys.h"

namespace hctr::serve {

struct ScheduleOptions {
  int instances = 1;                    ///< number of batches scored concurrently
  int64_t most_samples = 65536;         ///< samples per batch; a larger request becomes a batch of its own
  int64_t most_queued = 4096;           ///< maximum queued requests; further requests are refused
  std::chrono::microseconds delay{0};   ///< how long an incomplete batch waits for more requests
  std::chrono::microseconds timeout{};  ///< timeout of requests that set none; 0: unlimited
  int64_t priority_levels = 3, default_priority = 2;  ///< level 1 is served first
  /// Whether submit() may score small requests itself, if nothing waits and the model takes microseconds. This saves
  /// the switch to another thread, which takes longer than such a model. Requires a model that never blocks.
  bool in_caller = false;
};

/// The scores of a request do not depend on the other requests in its batch. On a CPU, they are bitwise equal in every
/// batch. Requests with a lower priority number are served first; requests of one priority are served in arrival order.
class BatchScheduler {
 public:
  /// The arguments must outlive the scheduler.
  BatchScheduler(ServedModel&, const RequestSamples&, const ModelOutputs&, ModelStatistics&, UnseenKeys&,
                 const ScheduleOptions&);
  /// Scores the queued requests, then ends.
  ~BatchScheduler();
  BatchScheduler(const BatchScheduler&) = delete;
  BatchScheduler& operator=(const BatchScheduler&) = delete;

  /// Queues a request. If the queue is full, answers the request with an error instead. May score and answer the
  /// request itself (ScheduleOptions::in_caller). `answer` is called by this or another thread.
  void submit(InferRequest, Answer);
  int64_t waiting() const;

 private:
  struct Job {
    InferRequest request;
    Answer answer;
    std::vector<const ServedOutput*> outputs{};
    SampleArrays samples{};
    Clock::time_point taken{}, read{};
  };
  using Jobs = std::vector<std::unique_ptr<Job>>;
  void serve_batches();
  /// Scores a batch of this request and of queued requests that fit. Returns a request that it has taken from the queue
  /// but that does not fit, or null. `only_small`: adds only requests that submit() may score itself.
  std::unique_ptr<Job> serve_batch(std::unique_ptr<Job>, bool only_small);
  /// Whether the caller of submit() scores this request; the caller then occupies an instance. Called with the lock
  /// held.
  bool starts_in_caller(const InferRequest&);
  /// Also scores small requests that arrive meanwhile, because waking another thread takes longer.
  void serve_in_caller(std::unique_ptr<Job>);
  /// Frees an instance.
  void end_batch();
  void count_time_alone(Clock::duration);
  std::unique_ptr<Job> take_first();
  /// Takes the next request for a batch that already has `samples` samples. Waits until the time `until`.
  std::unique_ptr<Job> take_more(int64_t samples, Clock::time_point until);
  /// Takes the next request if it is small. Does not wait.
  std::unique_ptr<Job> take_small();
  bool first_is_small() const;  ///< called with the lock held
  std::unique_ptr<Job> pop();
  /// Reads the inputs of a request. If the request is invalid, late or cancelled, or asks for vectors of keys, answers
  /// it and returns false.
  bool prepare(Job&);
  /// Errors: Refusal for a late or cancelled request.
  void expect_in_time(const Job&) const;
  /// Sets the job's outputs. Errors: Refusal for an unknown name.
  void select_outputs(Job&) const;
  /// Throws a Refusal if the outputs of a job are too large for a response.
  void expect_small_response(const Job&) const;
  /// Answers a request for vectors of keys.
  void look_up(Job&);
  WantedInternals wanted_by(const Job&) const;
  /// Whether a batch of `samples` samples can also take a job.
  bool fits(const WantedInternals& of_batch, int64_t samples, const Job&) const;
  void score(Jobs&);
  void score_alone(Jobs&, const Status&);
  void succeed(Job&, int64_t first, const BatchResults&, StageTimes);
  /// Answers a job with `response`. Adds the output time and the total time to `times`, and counts the job in the
  /// statistics.
  void respond(Job&, InferResponse response, Clock::time_point output_begin, StageTimes times, int64_t samples);
  void fail(Job&, Status);

  static constexpr int64_t kForgotten = 32;  // `alone_ns_` rises by at most 1 / kForgotten per request

  ServedModel& model_;
  const RequestSamples& reader_;
  const ModelOutputs& outputs_;
  ModelStatistics& statistics_;
  UnseenKeys& unseen_;
  ScheduleOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  std::map<int64_t, std::deque<std::unique_ptr<Job>>> queues_;  // by priority
  int64_t waiting_ = 0;
  int running_ = 0;  // batches being scored, at most one per instance
  // Time to score one request: a recent minimum, because a thread may have to wait for a core.
  std::atomic<int64_t> alone_ns_{1'000'000};
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hctr::serve
