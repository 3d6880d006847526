#include "train/step_profile.h"

#include <sys/resource.h>

#include <algorithm>
#include <set>

#include "device/device.h"

namespace hctr {
namespace {

constexpr int64_t kWarmUp = 10, kWhole = 10, kParts = 20;
// Whole steps go on until they have taken so long: filling and draining the queue would lengthen a few short ones.
constexpr int64_t kMostWhole = 200, kMostWholeOfUnknown = 40;  // the second where nobody knows when the run ends
constexpr double kWholeSeconds = 0.1;

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto in_seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
}

}  // namespace

StepProfile::StepProfile(const Config& config, Runtime& runtime, const Model& model, Trainer& trainer,
                         RunFolder& folder, std::optional<int64_t> steps_left)
    : config_(config),
      runtime_(runtime),
      model_(model),
      trainer_(trainer),
      folder_(folder),
      warm_up_(std::min(kWarmUp, steps_left.value_or(kWarmUp + kWhole + kParts) / 4)),
      whole_(std::min(kWhole, steps_left.value_or(kWarmUp + kWhole + kParts) / 4)),
      most_whole_(
          std::min(kMostWhole, std::max(whole_, steps_left ? *steps_left - warm_up_ - kParts : kMostWholeOfUnknown))),
      parts_(kParts),
      profiler_(runtime) {
  if (warm_up_ == 0) phase_ = whole_ == 0 ? Phase::parts : Phase::whole;
}

void StepProfile::before_fetch() {
  if (open_ || phase_ == Phase::warm_up || phase_ == Phase::done) return;
  open_ = true;
  const bool parts = phase_ == Phase::parts;
  trainer_.run_unrecorded(parts);
  if (parts) {
    profiler_.start();
  } else {
    trainer_.finish_and_read_loss();
    start_ = std::chrono::steady_clock::now();
  }
  cpu_start_ = processor_seconds();
}

void StepProfile::before_step() {
  if (uses_.empty() && phase_ != Phase::done) count_keys();
}

void StepProfile::count_keys() {
  const BatchView batch = trainer_.fetched_batch();
  const Graph& graph = model_.graph();
  for (size_t e = 0; e < model_.embeddings(); ++e) {
    const TableSpec& spec = model_.table_spec(e);
    const size_t input = graph.embedding_inputs[e];
    const BatchView::Table& table = batch.tables[input];
    const int64_t samples = trainer_.batch_shape().samples, bags = trainer_.batch_shape().tables[input].slots * samples;
    std::set<std::pair<int64_t, int64_t>> rows;
    for (int64_t bag = 0; bag < bags; ++bag)
      for (int32_t k = table.offset(bag); k < table.offset(bag + 1); ++k)
        rows.emplace(spec.identity_by_slot ? bag / samples : 0, table.key(k));
    uses_.push_back({static_cast<double>(table.packed->count), static_cast<double>(rows.size())});
  }
}

double StepProfile::open_seconds() const {
  return open_ ? std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() : 0;
}

void StepProfile::close() {
  if (!open_) return;
  if (phase_ == Phase::parts) {
    seconds_ += profiler_.stop();
    const std::vector<Span>& more = profiler_.spans();
    const double shift = spans_.empty() ? 0 : spans_.back().end + 1;  // spans of two measurements do not overlap
    for (Span span : more) {
      span.begin += shift;
      span.end += shift;
      spans_.push_back(span);
    }
  } else {
    trainer_.finish_and_read_loss();
    seconds_ += open_seconds();
  }
  open_ = false;
  cpu_seconds_ += processor_seconds() - cpu_start_;
  trainer_.run_unrecorded(false);
}

void StepProfile::pause() { close(); }

std::vector<std::string> StepProfile::after_step(bool pause) {
  if (phase_ == Phase::done) return {};
  ++steps_;
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
  return phase_ == Phase::parts && steps_ > 0 ? report() : std::vector<std::string>();
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
  times_.samples = trainer_.batch_shape().samples;
  times_.recorded = trainer_.records();
  times_.cores = usable_cores();
  times_.busy_cores = cpu_seconds_ / seconds_;
  add_up(spans_, steps_, seconds_, times_);
  add_bytes_of_tables();
  times_.ceilings =
      measure_ceilings(runtime_, config_.solver.mixed_precision.activations, fp8_products(model_.graph()) > 0);
  folder_.write_profile(to_json(times_));
  spans_.clear();
  return lines_of(times_);
}

}  // namespace hctr
