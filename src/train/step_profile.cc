#include "train/step_profile.h"

#include <sys/resource.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/device/device.h"

namespace hctr {
namespace {

constexpr int64_t kWarmUp = 10, kWhole = 10, kParts = 20;
// Recorded steps are short, and the first ones take longer because tables grow. Therefore the first kWarmUpRecorded
// steps are not measured.
constexpr int64_t kWarmUpRecorded = 200;
// Whole steps are measured for at least kWholeSeconds, because in a shorter time, filling and draining the queue would
// distort the result. At most kMostWhole whole steps are measured, or kMostWholeOfUnknown if the end of the run is
// unknown.
constexpr int64_t kMostWhole = 200, kMostWholeOfUnknown = 40;
constexpr double kWholeSeconds = 0.1;
constexpr int kMostAnew = 4;  // maximum number of restarts of a measurement because of table growth
// A series has kSeries recorded steps. A series that ends early counts if it has kLeastSeries steps. The third-to-last
// step is measured, because the first steps of a series begin with an empty queue, and the last steps have no later
// batch to prepare concurrently.
constexpr int64_t kSeries = 6, kLeastSeries = 4;
constexpr int64_t kMostRecorded = 400, kMostRecordedOfUnknown = 240;
// number of series without a sample after which unrecorded steps are measured instead
constexpr int64_t kTriesOfSeries = 4;
// kTraced: number of traced steps. kToSettle: number of steps before them that are excluded, because the first run of a
// recording is slower.
constexpr int64_t kTraced = 100, kToSettle = 10;

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto in_seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
}

}  // namespace

StepProfile::StepProfile(const Config& config, Runtime& runtime, const Replica& model, StepPipeline& pipeline,
                         RunFolder& folder, std::optional<int64_t> steps_left)
    : config_(config),
      runtime_(runtime),
      model_(model),
      pipeline_(pipeline),
      folder_(folder),
      warm_up_(std::min(kWarmUp, steps_left.value_or(kWarmUp + kWhole + kParts) / 4)),
      whole_(std::min(kWhole, steps_left.value_or(kWarmUp + kWhole + kParts) / 4)),
      most_whole_(kMostWholeOfUnknown),
      parts_(kParts),
      profiler_(runtime),
      recorded_(pipeline.can_time_recorded_parts()) {
  if (recorded_ && steps_left) warm_up_ = std::min(kWarmUpRecorded, *steps_left / 4);
  if (steps_left) {
    const int64_t left = *steps_left - warm_up_, for_parts = recorded_ ? std::min(kMostRecorded, left / 2) : kParts;
    most_whole_ = std::min(kMostWhole, std::max(whole_, left - for_parts));
  }
  if (recorded_) {
    parts_ = steps_left ? std::min(kMostRecorded, *steps_left - warm_up_ - most_whole_) : kMostRecordedOfUnknown;
    recorded_ = whole_ > 0 && parts_ >= kSeries;
    if (!recorded_) parts_ = kParts;
  }
  if (warm_up_ == 0) phase_ = whole_ == 0 ? Phase::parts : Phase::whole;
}

void StepProfile::before_fetch() {
  queued_before_ = profiler_.spans().size();
  if (open_ || phase_ == Phase::warm_up || phase_ == Phase::done) return;
  open_ = true;
  if (phase_ == Phase::parts) {
    pipeline_.run_unrecorded(!recorded_);
    if (recorded_ && trace_ == Trace::untried) try_to_trace();
    if (recorded_ && trace_ != Trace::on) choose_parts();
    profiler_.start();
    queued_before_ = 0;
  } else {
    pipeline_.finish_and_read_loss();
    start_ = std::chrono::steady_clock::now();
  }
  cpu_start_ = processor_seconds();
}

void StepProfile::try_to_trace() {
  times_.not_traced = profiler_.begin_trace();
  trace_ = times_.not_traced.empty() ? Trace::on : Trace::off;
  if (trace_ == Trace::off) return;
  pipeline_.time_recorded_parts(&profiler_);
  settled_ = parts_ < kTraced;
  parts_ = std::min(parts_, kTraced + kToSettle);
}

void StepProfile::stop_tracing() {
  profiler_.end_trace();
  pipeline_.time_recorded_parts(nullptr);
}

void StepProfile::add_traced() {
  in_series_ = 0;
  if (!std::exchange(settled_, true)) return;
  add_series({profiler_.traced(), profiler_.spans(),
              [this](size_t recording) -> const std::vector<Span>& { return profiler_.recorded(recording); }},
             traced_);
}

std::vector<std::string> StepProfile::after_traced_step(bool pause) {
  ++in_series_;
  const bool last = steps_ >= parts_;
  if (pause || last || (!settled_ && in_series_ >= kToSettle)) close();
  if (!last) return {};
  if (traced_.steps > 0) return finish();
  const bool knows_parts = std::any_of(profiler_.traced().begin(), profiler_.traced().end(),
                                       [](const TracedWork& work) { return work.mark.has_value(); });
  times_.not_traced = knows_parts ? "other work interrupts training every few steps"
                                  : "the activity records of CUPTI do not name the nodes of the CUDA graphs of steps";
  stop_tracing();
  trace_ = Trace::off;
  steps_ = 0;
  seconds_ = cpu_seconds_ = 0;
  return {};
}

void StepProfile::choose_parts() {
  if (samples_.size() == 1 && choices_.empty())
    choices_ = parts_to_time(samples_[0].recorded, static_cast<size_t>((parts_ - steps_) / kSeries));
  profiler_.time_parts(samples_.empty() ? std::vector<size_t>() : choices_[samples_.size() - 1]);
  pipeline_.time_recorded_parts(&profiler_);
}

void StepProfile::before_step() {
  if (recorded_ && pipeline_.tables_grew()) leave_out_growth();
  if (uses_.empty() && phase_ != Phase::done) count_keys();
}

void StepProfile::count_keys() {
  const BatchView batch = pipeline_.fetched_batch();
  const Graph& graph = model_.graph();
  for (size_t e = 0; e < model_.embeddings(); ++e) {
    const TableSpec& spec = model_.table_spec(e);
    const size_t input = graph.embedding_inputs[e];
    const BatchView::Table& table = batch.tables[input];
    const int64_t samples = pipeline_.batch_shape().samples,
                  bags = pipeline_.batch_shape().tables[input].slots * samples;
    std::set<std::pair<int64_t, int64_t>> rows;
    for (int64_t bag = 0; bag < bags; ++bag)
      for (int32_t k = table.offset(bag); k < table.offset(bag + 1); ++k)
        rows.emplace(spec.identity_by_slot ? bag / samples : 0, table.key(k));
    uses_.push_back({static_cast<double>(table.packed->count), static_cast<double>(rows.size())});
  }
}

void StepProfile::leave_out_growth() {
  if (phase_ == Phase::parts) return close();
  if (phase_ != Phase::whole || anew_ >= kMostAnew) return;
  close();
  ++anew_;
  steps_ = -1;  // the present step is not counted, because its increment makes this 0
  seconds_ = cpu_seconds_ = 0;
}

double StepProfile::open_seconds() const {
  return open_ ? std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() : 0;
}

void StepProfile::close() {
  if (!open_) return;
  if (phase_ == Phase::parts) {
    const double seconds = profiler_.stop();
    if (trace_ == Trace::on) {
      add_traced();
    } else if (recorded_) {
      add_sample();
    } else {
      for (Span span : profiler_.spans()) {
        span.begin += seconds_;
        span.end += seconds_;
        spans_.push_back(span);
      }
    }
    seconds_ += seconds;
  } else {
    pipeline_.finish_and_read_loss();
    seconds_ += open_seconds();
  }
  open_ = false;
  cpu_seconds_ += processor_seconds() - cpu_start_;
  pipeline_.run_unrecorded(false);
}

void StepProfile::add_sample() {
  const std::vector<size_t> buffers = std::exchange(buffers_, {});
  if (buffers.size() < static_cast<size_t>(kLeastSeries)) return;
  const size_t last = buffers.size() - 1;
  const std::vector<Span>&step = profiler_.recorded(buffers[last - 2]), &next = profiler_.recorded(buffers[last - 1]),
        &ahead = profiler_.recorded(buffers[last]);
  const size_t parts = samples_.empty() ? step.size() : samples_[0].recorded.size();
  for (const auto* one : {&step, &next, &ahead})
    if (one->size() != parts) return;  // no sample, because the step was recorded again with other parts
  const auto is_origin = [](const Span& span) { return span.timed && span.on == Span::On::compute; };
  const auto first = std::find_if(step.begin(), step.end(), is_origin);
  const auto first_of_next = std::find_if(next.begin(), next.end(), is_origin);
  // no sample, because the step was recorded again during the series
  if (first == step.end() || first_of_next == next.end()) return;
  StepSample sample;
  sample.period = first_of_next->begin - first->begin;
  const auto from_origin = [&](Span span) {
    span.begin -= first->begin;
    span.end -= first->begin;
    return span;
  };
  // While the measured step runs, the batch of the series' last step is prepared. That preparation is part of the
  // sample.
  for (size_t i = 0; i < step.size(); ++i)
    sample.recorded.push_back(from_origin(step[i].on == Span::On::prepare ? ahead[i] : step[i]));
  for (size_t i = queued_before_; i < profiler_.spans().size(); ++i)
    sample.queued.push_back(from_origin(profiler_.spans()[i]));
  samples_.push_back(std::move(sample));
}

bool StepProfile::all_parts_known() const { return !choices_.empty() && samples_.size() > choices_.size(); }

void StepProfile::pause() { close(); }

std::vector<std::string> StepProfile::after_step(bool pause) {
  if (phase_ == Phase::done) return {};
  ++steps_;
  if (trace_ == Trace::on) return after_traced_step(pause);
  if (recorded_ && phase_ == Phase::parts) {
    buffers_.push_back(static_cast<size_t>(pipeline_.last_buffer()));
    if (pause || buffers_.size() >= static_cast<size_t>(kSeries)) close();
    if (samples_.empty() && steps_ >= kTriesOfSeries * kSeries) {
      pipeline_.time_recorded_parts(nullptr);
      recorded_ = false;
      steps_ = 0;
      seconds_ = cpu_seconds_ = 0;
      parts_ = kParts;
    }
    return all_parts_known() || steps_ >= parts_ ? finish() : std::vector<std::string>();
  }
  int64_t wanted = phase_ == Phase::warm_up ? warm_up_ : phase_ == Phase::whole ? whole_ : parts_;
  if (phase_ == Phase::whole && steps_ < most_whole_ && seconds_ + open_seconds() < kWholeSeconds) wanted = steps_ + 1;
  if (pause || steps_ >= wanted) close();
  if (steps_ < wanted) return {};
  if (phase_ == Phase::parts) return report();
  if (phase_ == Phase::whole) times_.unmeasured = seconds_ / static_cast<double>(steps_);
  phase_ = phase_ == Phase::warm_up && whole_ > 0 ? Phase::whole : Phase::parts;
  steps_ = 0;
  seconds_ = cpu_seconds_ = 0;
  return {};
}

std::vector<std::string> StepProfile::finish() {
  close();
  if (phase_ != Phase::parts || steps_ == 0 || (recorded_ && samples_.empty() && traced_.steps == 0)) return {};
  if (recorded_) stop_tracing();
  return report();
}

void StepProfile::add_bytes_of_tables() {
  const auto number_bytes = static_cast<double>(size_of(config_.solver.mixed_precision.activations));
  for (PartTime& part : times_.parts) {
    if (part.type != "embedding" || part.work.bytes > 0) continue;
    for (size_t e = 0; e < uses_.size(); ++e) {
      const TableSpec& spec = model_.table_spec(e);
      if (part.name == spec.name || part.name == "all tables")
        part.work.bytes += bytes_of_table(part.part, spec, uses_[e], number_bytes);
    }
  }
}

std::vector<std::string> StepProfile::report() {
  phase_ = Phase::done;
  times_.device = describe(runtime_.device());
  times_.gpu = runtime_.device().is_cuda();
  times_.threads = runtime_.threads().threads();
  times_.samples = pipeline_.batch_shape().samples;
  times_.trained_recorded = pipeline_.records();
  times_.recorded = recorded_;
  times_.cores = usable_cores();
  times_.busy_cores = cpu_seconds_ / seconds_;
  if (traced_.steps > 0) {
    times_.traced = true;
    add_up(traced_.spans, traced_.steps, traced_.seconds, times_);
    times_.measured = times_.seconds;
  } else if (recorded_) {
    const double step = times_.unmeasured;
    times_.events = profiler_.cost_of_recorded_events();
    const StepTimeline timeline = timeline_of(samples_, step, times_.events);
    add_up(timeline.spans, 1, step, times_);
    times_.steps = static_cast<int64_t>(samples_.size());
    times_.measured = timeline.measured;
    times_.events_taken = timeline.events;
  } else {
    add_up(spans_, steps_, seconds_, times_);
    times_.measured = times_.seconds;
  }
  add_bytes_of_tables();
  times_.ceilings =
      measure_ceilings(runtime_, config_.solver.mixed_precision.activations, fp8_products(model_.graph()) > 0);
  folder_.write_profile(to_json(times_));
  spans_.clear();
  samples_.clear();
  traced_ = {};
  return lines_of(times_);
}

}  // namespace hctr
