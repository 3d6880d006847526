#include "step_bench.h"

#include "comm/self_comm.h"
#include "timing.h"
#include "train/load_config.h"
#include "train/trainer.h"

namespace hctr::bench {

void bench_step(Device device, const StepCase& wanted, Report& report) {
  const Log log = Log::to_stderr();
  Config config = load_config(wanted.config, false, log);
  if (wanted.batch > 0) config.solver.batchsize = wanted.batch;
  config.solver.max_iter = 1;  // the reader starts the set again when it is short
  config.solver.num_epochs.reset();
  Runtime runtime(device, {.threads = wanted.threads, .seed = config.solver.seed.value, .tf32 = config.solver.enable_tf32_compute});
  SelfComm comm;
  const BatchLayout layout(batch_shape(config.data, config.solver.batchsize));
  Model model(config, runtime, comm, layout.shape.samples, 1, Trainer::kSlots);
  Trainer trainer(config, runtime, comm, model, layout, log);
  constexpr double kRate = 1e-4;
  int64_t step = 0;
  for (; step < Trainer::kSlots; ++step) trainer.step(step, kRate);
  trainer.finish_and_read_loss();

  constexpr int kInARow = 10;
  Context ctx(runtime, runtime.compute_stream());
  const auto seconds = [&](Replay parts) {
    return seconds_each(ctx, 2, std::max(1, wanted.times / kInARow), [&](int) {
      for (int i = 0; i < kInARow; ++i) trainer.replay(step++, kRate, parts);
      trainer.finish_and_read_loss();
    }) / kInARow;
  };
  const double whole = seconds({}), compute = seconds({.prepare = false}), prepare = seconds({.compute = false});
  const std::string where = cat("batch ", layout.shape.samples, ", ", name_of(config.solver.mixed_precision.activations),
                                config.solver.enable_tf32_compute ? ", TF32" : "");
  report.add("training step", where, whole * 1e3, "ms");
  report.add("  samples", where, static_cast<double>(layout.shape.samples) / whole / 1e6, "M/s");
  report.add("  computing alone", where, compute * 1e3, "ms");
  report.add("  upload, lookup and sort alone", where, prepare * 1e3, "ms");
  report.add("  of these not hidden", where, (whole - compute) * 1e3, "ms");
  report.add("rows in all tables", where, static_cast<double>(model.embedding_rows()), "rows");
}

}  // namespace hctr::bench
