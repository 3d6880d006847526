#include "serve/batch_scheduler.h"

#include <algorithm>
#include <utility>

#include "config/problems.h"
#include "core/base/expect.h"
#include "core/device/current_device.h"

namespace hctr::serve {
namespace {

/// The output columns that a request selects: "loss" selects all columns, "loss.0" selects one.
struct Selected {
  size_t output = 0;
  int64_t first = 0, count = 0;
};

Selected select_output(const std::vector<ModelTensor>& outputs, const WantedOutput& wanted, const std::string& model) {
  std::vector<std::string> names;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].name == wanted.name) return {o, 0, outputs[o].shape[1]};
    names.push_back(outputs[o].name);
  }
  if (wanted.name == "OUTPUT0") return {0, 0, outputs[0].shape[1]};  // the output's name in NVIDIA's backend
  throw Refusal::invalid("unexpected inference output '", wanted.name, "' for model '", model, "'; outputs are ",
                         one_of(names));
}

}  // namespace

BatchScheduler::BatchScheduler(ServedModel& model, const RequestSamples& reader, ModelStatistics& statistics,
                               UnseenKeys& unseen, const ScheduleOptions& options)
    : model_(model), reader_(reader), statistics_(statistics), unseen_(unseen), options_(options) {
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
  statistics_.add_pending(1);
  try {
    apply_timeout(job->request);
    if (!job->request.deadline && options_.timeout.count() > 0)
      job->request.deadline = job->request.arrived + options_.timeout;
    int64_t priority = count_parameter(job->request.parameters, "priority").value_or(0);
    if (priority < 1 || priority > options_.priority_levels) priority = options_.default_priority;
    const std::lock_guard lock(mutex_);
    if (ends_) throw Refusal(Code::unavailable, "the model is being unloaded");
    if (waiting_ >= options_.most_queued)
      throw Refusal(Code::unavailable, cat("model '", job->request.model, "' has ", waiting_,
                                           " waiting requests, the maximum of its queue: retry later"));
    queues_[priority].push_back(std::move(job));
    ++waiting_;
  } catch (...) {
    return fail(*job, status_of_current_exception());
  }
  filled_.notify_one();
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
  filled_.wait(lock, [&] { return ends_ || waiting_ > 0; });
  return pop();
}

std::unique_ptr<BatchScheduler::Job> BatchScheduler::take_more(int64_t samples, Clock::time_point until) {
  if (samples >= options_.most_samples) return nullptr;
  std::unique_lock lock(mutex_);
  if (waiting_ == 0 && Clock::now() < until) filled_.wait_until(lock, until, [&] { return ends_ || waiting_ > 0; });
  return pop();
}

bool BatchScheduler::prepare(Job& job) {
  try {
    if (job.request.cancelled && job.request.cancelled()) throw Refusal(Code::cancelled, "the request was cancelled");
    if (job.request.deadline && job.taken >= *job.request.deadline)
      throw Refusal(
          Code::late,
          cat("the request waited longer than its timeout: ",
              std::chrono::duration_cast<std::chrono::microseconds>(job.taken - job.request.arrived).count(), " us"));
    for (const WantedOutput& wanted : job.request.outputs)
      (void)select_output(model_.outputs(), wanted, job.request.model);
    job.samples = reader_.read(job.request);
    unseen_.add(job.samples);
    job.read = Clock::now();
    return true;
  } catch (...) {
    fail(job, status_of_current_exception());
    return false;
  }
}

void BatchScheduler::serve_batches() {
  std::unique_ptr<Job> left_over;  // already read, but too large for the previous batch
  for (;;) {
    std::unique_ptr<Job> next = left_over ? std::move(left_over) : take_first();
    if (!next) return;
    Jobs batch;
    int64_t samples = 0;
    const Clock::time_point until = next->taken + options_.delay;
    bool ready = next->read != Clock::time_point{} || prepare(*next);
    for (;;) {
      if (ready) {
        if (!batch.empty() && samples + next->samples.samples > options_.most_samples) {
          left_over = std::move(next);
          break;
        }
        samples += next->samples.samples;
        batch.push_back(std::move(next));
      }
      next = take_more(samples, batch.empty() ? Clock::time_point{} : until);
      if (!next) break;
      ready = prepare(*next);
    }
    if (!batch.empty()) score(batch);
  }
}

std::vector<OutputView> BatchScheduler::score_samples(const SampleArrays& samples,
                                                      std::vector<std::vector<float>>& memory) {
  std::vector<OutputView> views;
  for (const ModelTensor& output : model_.outputs()) {
    memory.emplace_back(static_cast<size_t>(samples.samples * output.shape[1]));
    views.push_back({.name = output.name, .data = memory.back().data()});
  }
  const CurrentDevice kept(model_.on_gpu());
  if (samples.samples > 0) model_.score(samples.samples, samples.views(0), views);
  return views;
}

void BatchScheduler::score(Jobs& jobs) {
  const Clock::time_point begin = Clock::now();
  std::vector<std::vector<float>> scores;
  Clock::time_point joined = begin, scored = begin;
  int64_t samples = 0;
  try {
    SampleArrays together;
    for (size_t i = 1; i < jobs.size(); ++i) {
      if (i == 1) together = jobs[0]->samples;
      append_samples(together, jobs[i]->samples);
    }
    const SampleArrays& all = jobs.size() == 1 ? jobs[0]->samples : together;
    samples = all.samples;
    joined = Clock::now();
    score_samples(all, scores);
    scored = Clock::now();
  } catch (...) {
    return score_alone(jobs, status_of_current_exception());
  }
  int64_t first = 0;
  for (const std::unique_ptr<Job>& job : jobs) {
    const int64_t own = job->samples.samples;
    succeed(*job, first, scores,
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

void BatchScheduler::succeed(Job& job, int64_t first, const std::vector<std::vector<float>>& scores, StageTimes times) {
  const Clock::time_point begin = Clock::now();
  InferResponse response = response_to(job.request, {});
  try {
    std::vector<WantedOutput> wanted = job.request.outputs;
    if (wanted.empty())
      for (const ModelTensor& output : model_.outputs()) wanted.push_back({output.name});
    for (const WantedOutput& one : wanted) {
      const Selected selected = select_output(model_.outputs(), one, job.request.model);
      const std::vector<float>& all = scores[selected.output];
      const auto columns = static_cast<size_t>(selected.count);
      const auto own = std::make_shared<std::vector<float>>(
          all.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(first) * columns),
          all.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(first + job.samples.samples) * columns));
      response.outputs.push_back({.name = one.name,
                                  .type = Datatype::f32,
                                  .shape = {job.samples.samples, selected.count},
                                  .data = {reinterpret_cast<const char*>(own->data()), own->size() * sizeof(float)},
                                  .owner = own});
    }
  } catch (...) {
    return fail(job, status_of_current_exception());
  }
  const Clock::time_point now = Clock::now();
  times.output = now - begin;
  times.total = now - job.request.arrived;
  statistics_.add_success(times, job.samples.samples);
  statistics_.add_pending(-1);
  job.answer(std::move(response));
}

void BatchScheduler::fail(Job& job, Status status) {
  statistics_.add_failure(status.code, Clock::now() - job.request.arrived);
  statistics_.add_pending(-1);
  job.answer(response_to(job.request, std::move(status)));
}

}  // namespace hctr::serve
