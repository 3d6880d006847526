// Measures some steps of a run in parts (--profile), and reports where their time goes.
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

/// The first steps are not measured, the next ones as they are, then some in parts; then the report is written, and
/// training goes on. Call in this order for each step: before_fetch, before_step, after_step. One rank of several may
/// have it alone. The arguments outlive it.
///
/// Recorded steps are measured recorded and follow each other as in training. Where the GPU's driver says when each
/// kernel ran (KernelTrace), that is all that is needed (traced_steps.h). Else they run in short series: the device is
/// waited for, and one step of the series is looked at, in which everything runs beside it that does in training. All
/// parts of a step are timed in the first series, then a few at a time (step_timeline.h). Where steps are not recorded,
/// or several ranks record them together, all parts of some steps are timed that are not recorded.
class StepProfile {
 public:
  /// `max_iter`: steps of the run, if known: a short one is divided.
  StepProfile(const Config&, Runtime&, const Replica&, StepPipeline&, RunFolder&, std::optional<int64_t> steps_left);

  void before_fetch();
  /// The batch is there.
  void before_step();
  /// `pause`: something else than steps follows now. Returns the lines of the report after the last measured step.
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
  /// Tables have got memory for the next step. That takes as long as many steps, and comes less and less often: it is
  /// left out of recorded steps.
  void leave_out_growth();
  /// Before the first series of recorded steps: whether their kernels can be traced.
  void try_to_trace();
  void stop_tracing();
  /// What has been seen in the series of traced steps that ends now.
  void add_traced();
  std::vector<std::string> after_traced_step(bool pause);
  /// Before a series of recorded steps: which parts have events in it.
  void choose_parts();
  /// What has been seen of a step in the series that ends now, if it was long enough.
  void add_sample();
  bool all_parts_known() const;
  /// Since the measurement of whole steps that is under way began; 0 if none is.
  double open_seconds() const;
  void close();
  void add_bytes_of_tables();
  std::vector<std::string> report();

  const Config& config_;
  Runtime& runtime_;
  const Replica& model_;
  StepPipeline& pipeline_;
  RunFolder& folder_;
  int64_t warm_up_, whole_, most_whole_, parts_;  // steps of each phase; whole_ is the least
  Phase phase_ = Phase::warm_up;
  int64_t steps_ = 0;  // in the phase
  int anew_ = 0;       // times that whole steps have begun again
  bool open_ = false;  // a measurement is under way
  std::chrono::steady_clock::time_point start_;
  double cpu_start_ = 0, cpu_seconds_ = 0;
  double seconds_ = 0;  // of the phase
  Profiler profiler_;
  std::vector<Span> spans_;
  bool recorded_ = false;            // steps are measured recorded
  std::vector<StepSample> samples_;  // of them, by events
  enum class Trace { untried, on, off };
  Trace trace_ = Trace::untried;  // of recorded steps
  int64_t in_series_ = 0;         // steps of the traced series
  bool settled_ = false;          // what is recorded has run before
  TracedSteps traced_;
  std::vector<std::vector<size_t>> choices_;  // parts that are timed in each sample after the first
  std::vector<size_t> buffers_;               // of the steps in the series
  size_t queued_before_ = 0;                  // spans of the profiler before the last step
  std::vector<TableUse> uses_;                // of each embedding, in one batch
  StepTimes times_;
};

}  // namespace hctr
