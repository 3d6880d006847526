// Measures the parts of some steps of a run (--profile), and reports where their time goes.
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

/// The first steps are not measured; then some are measured whole, then some in parts; then the report is written, and
/// training continues. Call before_fetch, before_step, after_step in this order for each step. A single rank of several
/// may have one. The arguments outlive it.
///
/// Recorded steps are measured recorded, back to back as in training. If the GPU's driver reports when each kernel ran
/// (KernelTrace), one series of steps is enough (traced_steps.h). Otherwise steps run in short series: after waiting
/// for
/// the device, one step of the series is measured, overlapped by the same work as in training. The first series times
/// all parts of a step, later ones a few parts each (step_timeline.h). If steps are not recorded, or several ranks
/// record them together, all parts of some unrecorded steps are timed.
class StepProfile {
 public:
  /// `max_iter`: steps of the run, if known; a short run is divided between the phases.
  StepProfile(const Config&, Runtime&, const Replica&, StepPipeline&, RunFolder&, std::optional<int64_t> steps_left);

  void before_fetch();
  /// Call when the batch has been fetched.
  void before_step();
  /// `pause`: work other than steps follows now. Returns the lines of the report after the last measured step.
  std::vector<std::string> after_step(bool pause);
  /// No step follows now: at the end of a pass.
  void pause();
  /// Whether there is nothing left to measure.
  bool done() const { return phase_ == Phase::done; }
  /// At the end of the run: the report, if steps have been measured.
  std::vector<std::string> finish();

 private:
  enum class Phase { warm_up, whole, parts, done };
  void count_keys();
  /// Restarts the measurement because tables grew for the next step. Growth takes as long as many steps and becomes
  /// rare, so recorded steps exclude it.
  void leave_out_growth();
  /// Before the first series of recorded steps: determines whether their kernels can be traced.
  void try_to_trace();
  void stop_tracing();
  /// Adds the results of the traced series that ends now.
  void add_traced();
  std::vector<std::string> after_traced_step(bool pause);
  /// Before a series of recorded steps: chooses the parts that get events.
  void choose_parts();
  /// Adds the step measured in the series that ends now, if the series was long enough.
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
  int64_t warm_up_, whole_, most_whole_, parts_;  // steps of each phase; whole_ is the minimum
  Phase phase_ = Phase::warm_up;
  int64_t steps_ = 0;  // in the phase
  int anew_ = 0;       // restarts of the whole steps
  bool open_ = false;  // a measurement is in progress
  std::chrono::steady_clock::time_point start_;
  double cpu_start_ = 0, cpu_seconds_ = 0;
  double seconds_ = 0;  // of the phase
  Profiler profiler_;
  std::vector<Span> spans_;
  bool recorded_ = false;            // steps are measured recorded
  std::vector<StepSample> samples_;  // recorded steps, by events
  enum class Trace { untried, on, off };
  Trace trace_ = Trace::untried;  // tracing of recorded steps
  int64_t in_series_ = 0;         // steps in the traced series
  bool settled_ = false;          // the recordings have run before
  TracedSteps traced_;
  std::vector<std::vector<size_t>> choices_;  // parts that each sample after the first times
  std::vector<size_t> buffers_;               // of the steps in the series
  size_t queued_before_ = 0;                  // spans of the profiler before the last step
  std::vector<TableUse> uses_;                // of each embedding, in one batch
  StepTimes times_;
};

}  // namespace hctr
