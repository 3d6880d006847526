#include "serve/batch_scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/expect.h"
#include "core/device/current_device.h"
#include "serve/key_look_up.h"

namespace hctr::serve {
namespace {

// Limits for the requests that submit() scores itself. It does so in a thread of a front end, and a busy thread delays
// other clients.
constexpr int64_t kQuickNs = 50'000;
constexpr int64_t kQuickBytes = 1024;
constexpr int kMostInCaller = 16;   // maximum batches that one call of submit() scores
constexpr size_t kMostJoined = 64;  // maximum requests in such a batch

bool is_small(const InferRequest& request) {
  int64_t bytes = 0;
  for (const NamedTensor& input : request.inputs) bytes += std::ssize(input.data);
  return bytes <= kQuickBytes;
}

}  // namespace

BatchScheduler::BatchScheduler(ServedModel& model, const RequestSamples& reader, const ModelOutputs& outputs,
                               ModelStatistics& statistics, UnseenKeys& unseen, const ScheduleOptions& options)
    : model_(model), reader_(reader), outputs_(outputs), statistics_(statistics), unseen_(unseen), options_(options) {
  for (int i = 0; i < options_.instances; ++i) threads_.emplace_back([this] { serve_batches(); });
}

BatchScheduler::~BatchScheduler() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  filled_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int64_t BatchScheduler::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void BatchScheduler::submit(InferRequest request, Answer answer) {
  auto job = std::make_unique<Job>();
  job->request = std::move(request);
  job->answer = std::move(answer);
  bool wakes = false;
  statistics_.add_pending(1);
  try {
    apply_timeout(job->request);
    if (!job->request.deadline && options_.timeout.count() > 0)
      job->request.deadline = job->request.arrived + options_.timeout;
    int64_t priority = count_parameter(job->request.parameters, "priority").value_or(0);
    if (priority < 1 || priority > options_.priority_levels) priority = options_.default_priority;
    const std::lock_guard lock(mutex_);
    if (ends_) throw Refusal(Code::unavailable, "the model is being unloaded");
    if (!starts_in_caller(job->request)) {
      if (waiting_ >= options_.most_queued)
        throw Refusal(Code::unavailable, cat("model '", job->request.model, "' has ", waiting_,
                                             " waiting requests, the maximum of its queue: retry later"));
      queues_[priority].push_back(std::move(job));
      ++waiting_;
      wakes = running_ < options_.instances || options_.delay.count() > 0;
    }
  } catch (...) {
    return fail(*job, status_of_current_exception());
  }
  if (job) return serve_in_caller(std::move(job));
  if (wakes) filled_.notify_one();
}

bool BatchScheduler::starts_in_caller(const InferRequest& request) {
  if (!options_.in_caller || waiting_ > 0 || running_ >= options_.instances || options_.delay.count() > 0 ||
      alone_ns_ > kQuickNs || !is_small(request))
    return false;
  ++running_;
  return true;
}

void BatchScheduler::serve_in_caller(std::unique_ptr<Job> job) {
  const std::unique_ptr<BatchScheduler, void (*)(BatchScheduler*)> ends(
      this, [](BatchScheduler* scheduler) { scheduler->end_batch(); });  // runs also after an error
  job->taken = Clock::now();
  for (int batch = 0; job; ++batch) {
    job = serve_batch(std::move(job), true);
    if (!job && batch < kMostInCaller) job = take_small();
  }
}

std::unique_ptr<BatchScheduler::Job> BatchScheduler::take_small() {
  const std::lock_guard lock(mutex_);
  return first_is_small() ? pop() : nullptr;
}

bool BatchScheduler::first_is_small() const {
  for (const auto& [priority, queue] : queues_)
    if (!queue.empty()) return is_small(queue.front()->request);
  return false;
}

void BatchScheduler::end_batch() {
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    --running_;
    more = waiting_ > 0;
  }
  if (more) filled_.notify_one();
}

void BatchScheduler::count_time_alone(Clock::duration time) {
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(), before = alone_ns_;
  alone_ns_ = std::min(ns, before + before / kForgotten + 1);
}

std::unique_ptr<BatchScheduler::Job> BatchScheduler::pop() {
  for (auto& [priority, queue] : queues_) {
    if (queue.empty()) continue;
    std::unique_ptr<Job> job = std::move(queue.front());
    queue.pop_front();
    --waiting_;
    job->taken = Clock::now();
    return job;
  }
  return nullptr;
}

std::unique_ptr<BatchScheduler::Job> BatchScheduler::take_first() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [&] { return ends_ || (waiting_ > 0 && running_ < options_.instances); });
  std::unique_ptr<Job> first = pop();
  if (first) ++running_;
  return first;
}

std::unique_ptr<BatchScheduler::Job> BatchScheduler::take_more(int64_t samples, Clock::time_point until) {
  if (samples >= options_.most_samples) return nullptr;
  std::unique_lock lock(mutex_);
  if (waiting_ == 0 && Clock::now() < until) filled_.wait_until(lock, until, [&] { return ends_ || waiting_ > 0; });
  return pop();
}

void BatchScheduler::expect_in_time(const Job& job) const {
  if (job.request.cancelled && job.request.cancelled()) throw Refusal(Code::cancelled, "the request was cancelled");
  if (job.request.deadline && job.taken >= *job.request.deadline)
    throw Refusal(
        Code::late,
        cat("the request waited longer than its timeout: ",
            std::chrono::duration_cast<std::chrono::microseconds>(job.taken - job.request.arrived).count(), " us"));
}

void BatchScheduler::select_outputs(Job& job) const {
  for (const WantedOutput& wanted : job.request.outputs)
    job.outputs.push_back(&outputs_.find(wanted.name, job.request.model));
  if (job.outputs.empty()) job.outputs = outputs_.defaults();
}

WantedInternals BatchScheduler::wanted_by(const Job& job) const {
  WantedInternals wanted(model_);
  wanted.add(job.outputs);
  return wanted;
}

void BatchScheduler::expect_small_response(const Job& job) const {
  int64_t of_sample = 0;
  for (const ServedOutput* output : job.outputs) of_sample += output->elements * static_cast<int64_t>(sizeof(float));
  of_sample = std::max(of_sample, wanted_by(job).bytes_of_sample());
  if (job.samples.samples > kMostResultBytes / of_sample)
    throw Refusal::invalid("the outputs take ", of_sample, " bytes for each of ", job.samples.samples,
                           " samples, but a request may have at most ", kMostResultBytes,
                           " bytes of outputs: send fewer samples");
}

bool BatchScheduler::prepare(Job& job) {
  try {
    expect_in_time(job);
    const bool vectors = reader_.asks_for_vectors(job.request);
    if (vectors && job.request.outputs.empty()) job.request.outputs.push_back({"OUTPUT0"});
    select_outputs(job);
    if (!vectors) {
      job.samples = reader_.read(job.request);
      expect_small_response(job);
      unseen_.add(job.samples);
      job.read = Clock::now();
      return true;
    }
  } catch (...) {
    fail(job, status_of_current_exception());
    return false;
  }
  look_up(job);
  return false;
}

void BatchScheduler::look_up(Job& job) {
  InferResponse response = response_to(job.request, {});
  try {
    const auto keys = read_keys_of_tables(job.request, model_.config().embeddings.size());
    job.read = Clock::now();
    const CurrentDevice kept(model_.on_gpu());
    response.outputs.push_back(vectors_of_keys(model_, keys));
  } catch (...) {
    return fail(job, status_of_current_exception());
  }
  const Clock::time_point found = Clock::now();
  statistics_.add_batch(1, {}, found - job.read, {});
  respond(job, std::move(response), found,
          {.queue = job.taken - job.request.arrived, .input = job.read - job.taken, .infer = found - job.read}, 1);
}

bool BatchScheduler::fits(const WantedInternals& of_batch, int64_t samples, const Job& job) const {
  const int64_t together = samples + job.samples.samples;
  WantedInternals wanted = of_batch;
  wanted.add(job.outputs);
  const int64_t of_sample = wanted.bytes_of_sample();
  return together <= options_.most_samples && (of_sample == 0 || together <= kMostResultBytes / of_sample);
}

void BatchScheduler::serve_batches() {
  std::unique_ptr<Job> next;
  while (next || (next = take_first())) {
    next = serve_batch(std::move(next), false);
    if (!next) end_batch();
  }
}

std::unique_ptr<BatchScheduler::Job> BatchScheduler::serve_batch(std::unique_ptr<Job> next, bool only_small) {
  Jobs batch;
  WantedInternals wanted(model_);
  int64_t samples = 0;
  const Clock::time_point until = next->taken + options_.delay;
  bool ready = next->read != Clock::time_point{} || prepare(*next);
  while (next) {
    if (ready) {
      if (!batch.empty() && !fits(wanted, samples, *next)) break;
      samples += next->samples.samples;
      wanted.add(next->outputs);
      batch.push_back(std::move(next));
    }
    if (only_small)
      next = batch.size() < kMostJoined ? take_small() : nullptr;
    else
      next = take_more(samples, batch.empty() ? Clock::time_point{} : until);
    if (next) ready = prepare(*next);
  }
  if (!batch.empty()) score(batch);
  return next;
}

void BatchScheduler::score(Jobs& jobs) {
  const Clock::time_point begin = Clock::now();
  std::optional<BatchResults> results;
  Clock::time_point joined = begin, scored = begin;
  int64_t samples = 0;
  try {
    SampleArrays together;
    WantedInternals wanted(model_);
    for (size_t i = 0; i < jobs.size(); ++i) {
      wanted.add(jobs[i]->outputs);
      if (i == 1) together = jobs[0]->samples;
      if (i > 0) append_samples(together, jobs[i]->samples);
    }
    const SampleArrays& all = jobs.size() == 1 ? jobs[0]->samples : together;
    samples = all.samples;
    joined = Clock::now();
    results.emplace(model_, all, wanted);
    scored = Clock::now();
    if (jobs.size() == 1) count_time_alone(scored - joined);
  } catch (const Error& error) {
    if (error.kind() != Kind::io) return score_alone(jobs, status_of_current_exception());
    // A store did not answer. Scoring each request alone would wait for the store again.
    for (const std::unique_ptr<Job>& job : jobs) fail(*job, {Code::unavailable, error.what()});
    return;
  } catch (...) {
    return score_alone(jobs, status_of_current_exception());
  }
  int64_t first = 0;
  for (const std::unique_ptr<Job>& job : jobs) {
    const int64_t own = job->samples.samples;
    succeed(*job, first, *results,
            {.queue = job->taken - job->request.arrived,
             .input = job->read - job->taken + (joined - begin),
             .infer = scored - joined});
    first += own;
  }
  if (samples > 0) statistics_.add_batch(samples, joined - begin, scored - joined, Clock::now() - scored);
}

/// Scores each request alone, after an error in a joint batch: one bad request must not fail the others.
void BatchScheduler::score_alone(Jobs& jobs, const Status& status) {
  if (jobs.size() == 1) return fail(*jobs[0], status);
  for (std::unique_ptr<Job>& job : jobs) {
    Jobs one;
    one.push_back(std::move(job));
    score(one);
  }
}

void BatchScheduler::succeed(Job& job, int64_t first, const BatchResults& results, StageTimes times) {
  const Clock::time_point begin = Clock::now();
  InferResponse response = response_to(job.request, {});
  try {
    for (const ServedOutput* output : job.outputs)
      response.outputs.push_back(results.rows(*output, first, job.samples.samples));
  } catch (...) {
    return fail(job, status_of_current_exception());
  }
  respond(job, std::move(response), begin, times, job.samples.samples);
}

void BatchScheduler::respond(Job& job, InferResponse response, Clock::time_point output_begin, StageTimes times,
                             int64_t samples) {
  const Clock::time_point now = Clock::now();
  times.output = now - output_begin;
  times.total = now - job.request.arrived;
  statistics_.add_success(times, samples);
  statistics_.add_pending(-1);
  job.answer(std::move(response));
}

void BatchScheduler::fail(Job& job, Status status) {
  statistics_.add_failure(status.code, Clock::now() - job.request.arrived);
  statistics_.add_pending(-1);
  job.answer(response_to(job.request, std::move(status)));
}

}  // namespace hctr::serve
