#include "step_bench.h"

#include "core/comm/peer_exchange.h"
#include "core/comm/self_comm.h"
#include "core/device/arena.h"
#include "core/device/copy_bytes.h"
#include "infer/load_config.h"
#include "launch/job.h"
#include "ops/embedding/owner_vectors.h"
#include "program/program_surroundings.h"
#include "timing.h"
#include "train/step_pipeline.h"
#include "train/training_columns.h"

namespace hctr::bench {
namespace {

constexpr double kRate = 1e-4;
constexpr int kInARow = 10;
constexpr int64_t kVector = 64;  // elements of a vector

Config config_of(const StepCase& wanted, const Log& log) {
  Config config = load_config(wanted.config, false, log, {.environment = system_environment()});
  if (wanted.batch > 0) config.solver.batchsize = wanted.batch;
  config.solver.max_iter = 1;  // trains by iterations instead of epochs, so that the reader repeats a short set
  config.solver.num_epochs.reset();
  config.data.statistics = training_statistics(config, nullptr, log);
  return config;
}

std::string case_of(const Config& config, int64_t samples) {
  return cat("batch ", samples, ", ", name_of(config.solver.mixed_precision.activations),
             config.solver.mixed_precision.fp8_products ? ", FP8"
             : config.solver.enable_tf32_compute        ? ", TF32"
             : config.solver.tf32x3()                   ? ", TF32 x 3"
                                                        : "");
}

/// The model of one rank, which trains the same batches repeatedly.
class Steps {
 public:
  Steps(const Config& config, Device device, Communicator& comm, int warm_up, int threads, const Log& log)
      : runtime_(device, {.threads = threads,
                          .seed = config.solver.seed.value,
                          .tf32 = config.solver.enable_tf32_compute,
                          .tf32x3 = config.solver.tf32x3(),
                          .several_ranks = comm.size() > 1,
                          .row_memory = row_memory_limits(config.solver.table_memory, device, comm)}),
        layout_(batch_layout(config, samples_of_rank(config.solver.batchsize, comm.size()), device)),
        model_(config, runtime_, comm, {layout_.shape.samples, 1, StepPipeline::kBuffers}),
        trainer_(config, comm, model_, layout_, log) {
    for (; step_ < std::max(StepPipeline::kBuffers, warm_up); ++step_)
      if (!trainer_.step(step_, kRate)) trainer_.restart(), --step_;
    trainer_.finish_and_read_loss();
  }

  Runtime& runtime() { return runtime_; }
  const Replica& model() const { return model_; }
  const BatchShape& shape() const { return layout_.shape; }

  /// Returns the seconds of a step, of which only `parts` run.
  double seconds(int times, Replay parts) {
    Context ctx(runtime_, runtime_.compute_stream());
    return seconds_each(ctx, 2, std::max(1, times / kInARow),
                        [&](int) {
                          for (int i = 0; i < kInARow; ++i) trainer_.replay(step_++, kRate, parts);
                          trainer_.finish_and_read_loss();
                        }) /
           kInARow;
  }

 private:
  Runtime runtime_;
  BatchLayout layout_;
  Replica model_;
  StepPipeline trainer_;
  int64_t step_ = 0;
};

/// The seconds that each exchange of a step takes when it runs alone.
struct ExchangeSeconds {
  double gradients = 0, vectors = 0, peer_exchange = 0, keys = 0;
};

/// Times the peer exchange of vectors of one dtype, for all tables together, in the layout of gradients.
double peer_exchange_seconds(Context& ctx, Communicator& comm, DType dtype, int64_t elements, int times) {
  const int64_t ranks = comm.size(), vectors = std::max<int64_t>(1, elements / ranks / kVector);
  Arena memory;
  for (int i = 0; i < 3; ++i) memory.add(TensorSpec(dtype, {vectors, ranks, kVector}));
  const size_t firsts = memory.add(TensorSpec(DType::i32, {ranks + 1})),
               places =
                   memory.add(TensorSpec(DType::i32, {ranks * static_cast<int64_t>(sizeof(ops::RemoteColumn) / 4)}));
  memory.build(ctx.device());
  RankRanges parts = RankRanges::equal(comm.size(), vectors * kVector);
  parts.count[static_cast<size_t>(comm.rank())] = 0;  // a rank sends nothing to itself
  const auto exchange = comm.make_peer_exchange({memory.get(1), parts, memory.get(2), parts});
  // Rank c receives vector c of every sample.
  std::vector<int32_t> first = {0};
  std::vector<ops::RemoteColumn> place;
  for (int r = 0; r < comm.size(); ++r) {
    place.push_back({r == comm.rank() ? memory.get(1).bytes() +
                                            static_cast<size_t>(parts.begin[static_cast<size_t>(r)]) * size_of(dtype)
                                      : exchange->destination(r),
                     1, r * vectors});
    first.push_back(r + 1);
  }
  from_host(ctx.stream(), memory.get(firsts), first);
  copy_bytes(ctx.stream(), memory.get(places).bytes(), place.data(), place.size() * sizeof(ops::RemoteColumn));
  ctx.stream().synchronize();
  const ops::KeyBatch batch{.slots = ranks, .samples = vectors, .columns = ranks};
  const ops::OwnerVectors blocks{
      .memory = {.dtype = dtype, .remote = exchange->direct(), .aborted = exchange->aborted()},
      .columns = ranks,
      .first = memory.get(firsts).data<const int32_t>(),
      .remote_columns = reinterpret_cast<const ops::RemoteColumn*>(memory.get(places).bytes())};
  return seconds_in_a_row(ctx, kInARow, std::max(1, times / kInARow), [&](int) {
    exchange->begin_write(ctx);
    ops::split_gradients(ctx, batch, blocks, ops::Combiner::sum, memory.get(0), {});
    exchange->end_write(ctx);
    exchange->wait(ctx);
  });
}

ExchangeSeconds exchange_seconds(Steps& steps, Communicator& comm, DType exchange_dtype, int times) {
  int64_t keys = 0;
  for (const BatchShape::Table& table : steps.shape().tables) keys += table.key_capacity;
  Runtime& runtime = steps.runtime();
  Context ctx(runtime, runtime.compute_stream());
  const auto seconds = [&](DType dtype, int64_t elements, bool sum) {
    const int64_t part = std::max<int64_t>(1, elements / comm.size());
    Arena memory;
    for (int i = 0; i < 2; ++i) memory.add(TensorSpec(dtype, {part * comm.size()}));
    memory.build(runtime.device());
    const RankRanges parts = RankRanges::equal(comm.size(), part);
    return seconds_in_a_row(ctx, kInARow, std::max(1, times / kInARow), [&](int) {
      if (sum)
        comm.all_reduce(ctx, memory.get(0), Reduce::sum);
      else
        comm.all_to_all(ctx, memory.get(0), parts, memory.get(1), parts);
    });
  };
  return {seconds(DType::f32, steps.model().dense_parameters(), true),
          seconds(exchange_dtype, steps.model().embedding_elements(), false),
          peer_exchange_seconds(ctx, comm, exchange_dtype, steps.model().embedding_elements(), times),
          seconds(DType::i64, keys, false)};
}

}  // namespace

void bench_step(Device device, const StepCase& wanted, Report& report) {
  const Log log = log_to_stderr();
  const Config config = config_of(wanted, log);
  SelfComm comm;
  Steps steps(config, device, comm, wanted.warm_up, wanted.threads, log);
  const double whole = steps.seconds(wanted.times, {}), compute = steps.seconds(wanted.times, {.prepare = false}),
               prepare = steps.seconds(wanted.times, {.compute = false});
  const int64_t samples = steps.shape().samples;
  const std::string where = case_of(config, samples);
  report.add("training step", where, whole * 1e3, "ms");
  report.add("  samples", where, static_cast<double>(samples) / whole / 1e6, "M/s");
  report.add("  computing alone", where, compute * 1e3, "ms");
  report.add("  upload, lookup and sort alone", where, prepare * 1e3, "ms");
  report.add("  upload, lookup and sort, not overlapped", where, (whole - compute) * 1e3, "ms");
  report.add("rows in all tables", where, static_cast<double>(steps.model().embedding_rows()), "rows");
}

void bench_scale(const std::vector<Device>& devices, const ScaleCase& wanted, Report& report) {
  const Log log = log_to_stderr();
  Config config = config_of(wanted.step, log);
  const int64_t batch = config.solver.batchsize;
  double first_speed = 0;  // samples per second and rank when the first number of ranks was measured
  for (const int ranks : wanted.ranks) {
    if (static_cast<size_t>(ranks) > devices.size())
      throw Error(Kind::device, cat(ranks, " ranks need as many GPUs, but this machine has ", devices.size(),
                                    "; set fewer --ranks, or use --device cpu"));
    config.solver.batchsize = wanted.strong ? batch : batch * ranks;
    double step = 0, computing = 0;
    ExchangeSeconds exchange;
    Job job({devices.begin(), devices.begin() + ranks}, nullptr, std::chrono::seconds(60), log, "training",
            program_surroundings());
    job.run([&](Communicator& comm, Device device) {
      Steps steps(config, device, comm, wanted.step.warm_up, std::max(1, wanted.step.threads / ranks), log);
      comm.barrier();
      const double seconds = steps.seconds(wanted.step.times, {}),
                   compute = steps.seconds(wanted.step.times, {.prepare = false});
      const ExchangeSeconds alone = exchange_seconds(steps, comm, config.solver.exchange(), wanted.step.times);
      if (comm.rank() != 0) return;
      step = seconds;
      computing = compute;
      exchange = alone;
    });
    const double speed = static_cast<double>(config.solver.batchsize) / step;
    if (first_speed == 0) first_speed = speed / ranks;
    const std::string where = cat(ranks, ranks == 1 ? " rank, " : " ranks, ", case_of(config, config.solver.batchsize));
    report.add("training step", where, step * 1e3, "ms");
    report.add("  samples", where, speed / 1e6, "M/s");
    report.add("  of ideal", where, 100 * speed / (first_speed * ranks), "%");
    report.add("  computing alone", where, computing * 1e3, "ms");
    if (ranks == 1) continue;
    report.add("  all-reduce of dense gradients alone", where, exchange.gradients * 1e3, "ms");
    report.add("  all-to-all of vectors alone", where, exchange.vectors * 1e3, "ms");
    report.add("  peer exchange of vectors alone", where, exchange.peer_exchange * 1e3, "ms");
    report.add("  all-to-all of keys alone", where, exchange.keys * 1e3, "ms");
  }
}

}  // namespace hctr::bench
