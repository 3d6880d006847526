// Measures the parts of some steps of a run and reports their time (--profile).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/base/log.h"
#include "core/device/profiler.h"
#include "formats/data/batch_layout.h"
#include "net/model/replica.h"
#include "train/profile_report.h"
#include "train/run_folder.h"
#include "train/step_pipeline.h"
#include "train/step_timeline.h"
#include "train/table_work.h"
#include "train/traced_steps.h"

namespace hctr {

/// Measures in phases. The first steps are not measured. Later some steps are measured as a whole, and then some steps
/// by part. Finally the report is written, and training continues. For each step call before_fetch(), before_step() and
/// after_step(), in this order. Of several ranks, at most one has a StepProfile. The arguments must outlive the object.
///
/// Recorded steps are measured as recorded, back to back as in training. If the driver can report the times of each
/// kernel (KernelTrace), one series of steps is sufficient (traced_steps.h). Otherwise steps run in short series. Each
/// series begins with an idle device, and one of its steps is measured while the same work overlaps as in training. The
/// first series times all parts of a step, later series time a few parts each (step_timeline.h). If steps are not
/// recorded, or if several ranks record them together, all parts of a few unrecorded steps are timed.
class StepProfile {
 public:
  /// `steps_left`: the remaining steps of the run, if known. A short run is divided between the phases.
  StepProfile(const Config&, Runtime&, const Replica&, StepPipeline&, RunFolder&, std::optional<int64_t> steps_left);

  void before_fetch();
  /// Call after the batch has been fetched.
  void before_step();
  /// `pause`: whether work other than steps follows. Returns the lines of the report after the last measured step.
  std::vector<std::string> after_step(bool pause);
  /// Call at the end of a pass, where no step follows.
  void pause();
  /// Whether all measurements are complete.
  bool done() const { return phase_ == Phase::done; }
  /// Call at the end of the run. Returns the report if any steps have been measured.
  std::vector<std::string> finish();

 private:
  enum class Phase { warm_up, whole, parts, done };
  void count_keys();
  /// Restarts the measurement if tables grew for the next step. Growth takes as long as many steps and becomes rare, so
  /// the measurement excludes it.
  void leave_out_growth();
  /// Call before the first series of recorded steps. Tests whether their kernels can be traced.
  void try_to_trace();
  void stop_tracing();
  /// Adds the results of the traced series that has just ended.
  void add_traced();
  std::vector<std::string> after_traced_step(bool pause);
  /// Call before a series of recorded steps. Chooses the parts that are timed by events.
  void choose_parts();
  /// Adds the measured step of the series that has just ended, if the series was long enough.
  void add_sample();
  bool all_parts_known() const;
  /// Seconds since the current measurement of whole steps began; 0 if none is in progress.
  double open_seconds() const;
  void close();
  void add_bytes_of_tables();
  std::vector<std::string> report();

  const Config& config_;
  Runtime& runtime_;
  const Replica& model_;
  StepPipeline& pipeline_;
  RunFolder& folder_;
  // number of steps in each phase; whole_ is the minimum for whole steps
  int64_t warm_up_, whole_, most_whole_, parts_;
  Phase phase_ = Phase::warm_up;
  int64_t steps_ = 0;  // steps so far in this phase
  int anew_ = 0;       // restarts of the measurement of whole steps
  bool open_ = false;  // whether a measurement is in progress
  std::chrono::steady_clock::time_point start_;
  double cpu_start_ = 0, cpu_seconds_ = 0;
  double seconds_ = 0;  // seconds measured in this phase
  Profiler profiler_;
  std::vector<Span> spans_;
  bool recorded_ = false;            // whether recorded steps are measured
  std::vector<StepSample> samples_;  // recorded steps, measured by events
  enum class Trace { untried, on, off };
  Trace trace_ = Trace::untried;  // state of tracing recorded steps
  int64_t in_series_ = 0;         // steps so far in the traced series
  bool settled_ = false;          // whether every recording has run at least once
  TracedSteps traced_;
  std::vector<std::vector<size_t>> choices_;  // [series] the parts to time in each series after the first
  std::vector<size_t> buffers_;               // buffers of the steps in the series
  size_t queued_before_ = 0;                  // number of the profiler's spans before the last step
  std::vector<TableUse> uses_;                // [embedding] use in one batch
  StepTimes times_;
};

}  // namespace hctr
