// bench: measures parts of a training step on this machine, and compares them with the peak rates of the device.
#include <algorithm>

#include "cache_bench.h"
#include "core/base/expect.h"
#include "core/base/input_files.h"
#include "embedding_bench.h"
#include "index_bench.h"
#include "index_memory.h"
#include "ops/gemm/blas.h"
#include "program/command_line.h"
#include "program/process_end.h"
#include "program/program_surroundings.h"
#include "program/terminal.h"
#include "reader_bench.h"
#include "rows_bench.h"
#include "score_bench.h"
#include "serve_bench.h"
#include "simulate.h"
#include "step_bench.h"
#include "store_bench.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  bench index --json index.json
  bench rows
  bench embedding --only Criteo
  bench step samples/wdl/wdl.json --batch 65536
  bench scale samples/wdl/wdl.json --batch 16384 --ranks 1 2 4
  bench scale samples/wdl/wdl.json --batch 16384 --simulate hosts=64,gpus=8,network=8xib400
  bench score runs/wdl --batches 1 64 4096
  bench serve ctr --address 127.0.0.1:8000 --clients 8
  bench serve ctr --address 127.0.0.1:8001 --grpc --rate 1000
  bench reader --threads 2
  bench reader samples/wdl/wdl.json --threads 16
  bench store --redis 127.0.0.1:6379
  bench index --device cpu --quick)";

struct Arguments {
  std::string device = "auto", json;
  bool quick = false;
  int threads = usable_cores();
  std::string only;
  int64_t cache_rows = 4'000'000;
  bench::ScaleCase scale;
  bench::SimulateCase simulate;
  bench::ScoreCase scoring;
  std::vector<std::string> scoring_without;
  bench::StoreCase stored;
  bench::ServeCase served;
  bench::ReaderCase reading;
};

struct Subcommands {
  explicit Subcommands(CommandLine& app);
  std::vector<CommandLine> all() const {
    return {index, rows, embedding, cache, reader, step, scale, score, store, serving};
  }

  CommandLine index, rows, embedding, cache, reader, step, scale, score, store, serving;
};

Device device_of(const std::string& word) {
  const GpuSearch search = find_gpus();
  if (word == "cuda" && search.count == 0)
    throw Error(Kind::device, cat("--device cuda: no usable GPU: ", search.why_none));
  return word == "cpu" || search.count == 0 ? Device{} : Device{DeviceKind::cuda, 0};
}

/// Returns all GPUs or, for the CPU, as many CPU devices as the largest number of ranks in `ranks`.
std::vector<Device> devices_of(const std::string& word, const std::vector<int>& ranks) {
  const Device first = device_of(word);
  if (!first.is_cuda()) return std::vector<Device>(static_cast<size_t>(*std::max_element(ranks.begin(), ranks.end())));
  std::vector<Device> all;
  for (int g = 0; g < find_gpus().count; ++g) all.push_back({DeviceKind::cuda, g});
  return all;
}

void bench_all_indices(Runtime& runtime, Context& ctx, bool quick, bench::Report& report) {
  using bench::IndexCase;
  std::vector<IndexCase> cases;
  if (quick || !ctx.device().is_cuda()) {
    cases = {{quick ? 18 : 24, 0.5, quick ? 10 : 18}, {quick ? 18 : 24, 0.75, quick ? 10 : 18}};
  } else {
    for (const double load : {0.5, 0.75})
      for (const auto& [entries, batch] : {std::pair{22, 20}, {26, 24}, {26, 16}, {28, 24}})
        cases.push_back({entries, load, batch});
  }
  const bench::Ceilings ceilings = bench::measure_ceilings(ctx,
                                                           size_t{1} << (quick                    ? 24
                                                                         : ctx.device().is_cuda() ? 33
                                                                                                  : 28),
                                                           report);
  for (const IndexCase& one : cases) bench::bench_index(ctx, one, ceilings, report);
  bench::bench_index_memory(runtime, quick ? 12 : 20, report);
}

void bench_all_rows(Context& ctx, bool quick, bench::Report& report) {
  using bench::RowsCase;
  const bool large = ctx.device().is_cuda() && !quick;
  const bench::Ceilings ceilings = bench::measure_ceilings(ctx, size_t{1} << (quick ? 24 : large ? 33 : 28), report);
  const int64_t samples = quick ? 64 : large ? 65536 : 2048;
  for (const DType storage : {DType::f32, DType::f16})
    for (const RowsCase& one : {RowsCase{16,
                                         quick   ? 12
                                         : large ? 26
                                                 : 20,
                                         samples, 26, storage},
                                RowsCase{128,
                                         quick   ? 12
                                         : large ? 24
                                                 : 18,
                                         samples, 26, storage}})
      bench::bench_rows(ctx, one, ceilings, report);
}

Subcommands::Subcommands(CommandLine& app)
    : index(app.add_subcommand("index", "the hash index from keys to rows")),
      rows(app.add_subcommand("rows", "rows of tables: lookup and sum, sort, backward and update")),
      embedding(
          app.add_subcommand("embedding", "sets of embedding tables, as other programs and frameworks call them")),
      cache(app.add_subcommand("cache", "look-ups in a store through its GPU cache")),
      reader(app.add_subcommand("reader", "reading data of every format, from the page cache into batches")),
      step(app.add_subcommand("step", "whole training steps of a model, without reading")),
      scale(app.add_subcommand("scale", "training steps of a model on one and on several ranks of this machine")),
      score(app.add_subcommand("score", "scoring with a saved model, from memory to memory")),
      store(app.add_subcommand("store", "look-ups in Redis and RocksDB, compared with the benchmark programs of both")),
      serving(app.add_subcommand("serve", "a service with KServe's v2 protocol, such as huge_ctr serve or Triton")) {}

void add_step_options(CommandLine step, CommandLine scale, Arguments& given) {
  for (CommandLine* part : {&step, &scale}) {
    part->add_option("config", given.scale.step.config, "the model and its data: a JSON file")
        .required()
        .existing_file();
    part->add_option("--batch", given.scale.step.batch,
                     part == &step ? "samples per batch; 0: as in the config"
                                   : "samples per batch of one rank; 0: as in the config")
        .non_negative();
    part->add_option("--warm-up", given.scale.step.warm_up, "warm-up steps, after which all rows exist")
        .range(0, 1000000)
        .show_default();
    part->add_option("--times", given.scale.step.times, "steps to measure").range(10, 1000000).show_default();
  }
  scale
      .add_option("--ranks", given.scale.ranks,
                  "numbers of ranks to measure, one after the other; speeds are "
                  "relative to the first number")
      .range(1, 1024)
      .show_default();
  scale.add_flag("--strong", given.scale.strong, "strong scaling: the batch is divided among all ranks");
  scale.add_option(
      "--simulate", given.simulate.cluster,
      "only predict steps on these hosts: hosts=16,gpus=8,network=8xib400,links=nvlink; network: the adapters of a "
      "host by Gb/s (ib400, eth100), or GB/s:us; links inside a host: nvlink, pcie or GB/s:us of a GPU");
  scale.add_option("--gpu-name", given.simulate.gpu, "a known GPU to predict for, such as H100");
  scale.add_option("--measured", given.simulate.measured,
                   "measured step times of one GPU as SAMPLES:MS, used to scale predictions");
}

void add_score_options(CommandLine score, Arguments& given) {
  score.add_option("model", given.scoring.model, "a run folder, a checkpoint or a prefix of model files").required();
  score.add_option("--config", given.scoring.config, "the model's config; default: the one saved with it")
      .existing_file();
  score.add_option("--batches", given.scoring.batches, "numbers of samples per call, measured one after the other")
      .range(1, 1 << 30)
      .show_default();
  score.add_option("--change", given.scoring.changes, "changes of config fields, such as solver.mixed_precision=bf16");
  score.add_option("--seconds", given.scoring.seconds, "seconds to measure each batch size")
      .positive_number()
      .show_default();
  score.add_option("--without", given.scoring_without, "optimizations of scoring to switch off")
      .one_of({"few_rows", "kernel_copies", "polling", "pieces", "predictions_only", "packed_weights"});
  score.add_option("--few-rows", given.scoring.few_rows,
                   "largest batch that uses the GEMM for small batches; -1: as in a Model");
  score.add_option("--least-piece", given.scoring.rules.least_piece, "fewest samples of a piece of a batch")
      .show_default();
}

void add_store_options(CommandLine store, Arguments& given) {
  store.add_option("--redis", given.stored.redis, "HOST:PORT of a server, or of cluster nodes separated by commas");
  store.add_option("--rocksdb", given.stored.rocksdb, "a new folder for databases, which are removed at the end");
  store.add_option("--files", given.stored.files, "a new folder for files, which are removed at the end");
  store.add_option("--rows", given.stored.rows, "rows of the table").range(1, 1 << 30).show_default();
  store.add_option("--dim", given.stored.dim, "elements of a row").range(1, 1 << 20).show_default();
  store.add_option("--batch", given.stored.batch, "keys of a request").range(1, 1 << 24).show_default();
}

void add_serve_options(CommandLine serving, Arguments& given) {
  serving.add_option("model", given.served.model, "name of the model in the service").required();
  serving.add_option("--address", given.served.address, "HOST:PORT").show_default();
  serving.add_flag("--grpc", given.served.grpc, "send requests by gRPC; the address then has the gRPC port");
  serving.add_option("--samples", given.served.samples, "samples of a request").range(1, 1 << 20).show_default();
  serving.add_option("--clients", given.served.clients, "number of connections, each with one request at a time")
      .range(1, 10000)
      .show_default();
  serving
      .add_option("--rate", given.served.rate,
                  "requests per second at random times; omitted: each connection sends a "
                  "request after each answer")
      .positive_number();
  serving.add_option("--seconds", given.served.seconds, "seconds to measure").positive_number().show_default();
  serving.add_option("--most-key", given.served.most_key, "upper bound (exclusive) of integers in inputs")
      .positive()
      .show_default();
  serving
      .add_option(
          "--slot-keys", given.served.slot_keys,
          "the key in column s is random in [s * N, (s + 1) * N), as data_generator writes it for slots of N rows")
      .positive();
  serving.add_option("--alpha", given.served.alpha, "exponent of the power law of keys; 0: uniform")
      .real_range(0, 10)
      .show_default();
  serving
      .add_option("--requests", given.served.requests,
                  "number of requests with different values, which clients repeat; omitted: up to 16")
      .range(1, 1 << 20);
  serving.add_flag("--shared-memory", given.served.shared_memory,
                   "pass tensors in shared memory; the service runs on this machine with --shared-memory");
}

void add_reader_options(CommandLine reader, Arguments& given) {
  reader.add_option("--samples", given.reading.rows, "rows of the generated files").range(1, 1 << 30).show_default();
  reader.add_option("--ranks", given.reading.ranks, "read as the first of this number of ranks, which share the set")
      .range(1, 1024)
      .show_default();
  reader.add_option("--shuffle", given.reading.shuffle, "rows of a shuffle window; 0: the order of the set")
      .non_negative();
  reader.add_flag("--serial", given.reading.serial, "also measure the single-threaded parts");
  reader.add_option("--only", given.only, "only formats whose name contains this word");
  reader.add_option("config", given.reading.config, "read the training data of this config instead: a JSON file")
      .existing_file();
}

void add_common_options(CommandLine part, Arguments& given) {
  part.add_option("--device", given.device, "cpu, cuda, or auto: a GPU if one exists").one_of({"cpu", "cuda", "auto"});
  part.add_option("--json", given.json, "also write the figures to this file");
  part.add_flag("--quick", given.quick, "tiny sizes, for a smoke test");
  part.add_option("--threads", given.threads, "CPU threads; for the reader, parser threads")
      .range(1, 1024)
      .show_default();
}

/// Measures the part that the command line names.
void run(const Subcommands& part, Arguments& given) {
  bench::StepCase& steps = given.scale.step;
  bench::SimulateCase& simulate = given.simulate;
  bench::ScoreCase& scoring = given.scoring;
  expect_no_input(given.json, "--json", {steps.config, given.reading.config});
  const Device device = device_of(given.device);
  if (!device.is_cuda()) ops::load_blas(program_surroundings());
  bench::Report report(describe(device));
  print_formatted("%s\n", describe(device).c_str());
  steps.threads = given.threads;
  if (given.quick) steps.times = 10;
  if (part.step.parsed()) {
    bench::bench_step(device, steps, report);
  } else if (part.scale.parsed() && !simulate.cluster.empty()) {
    simulate.config = steps.config;
    simulate.batch = steps.batch;
    simulate.strong = given.scale.strong;
    bench::simulate_scale(device, simulate, report);
  } else if (part.scale.parsed()) {
    bench::bench_scale(devices_of(given.device, given.scale.ranks), given.scale, report);
  } else if (part.score.parsed()) {
    scoring.device = device.is_cuda() ? DeviceChoice::cuda : DeviceChoice::cpu;
    scoring.threads = given.threads;
    if (given.quick) scoring.seconds = 0;
    if (scoring.few_rows >= 0)
      scoring.rules.forward.few_rows_f32 = scoring.rules.forward.few_rows_half = scoring.few_rows;
    for (const std::string& way : given.scoring_without) bench::switch_off(scoring.rules, way);
    bench::bench_score(scoring, report);
  } else if (part.store.parsed()) {
    given.stored.threads = given.threads;
    if (given.quick) given.stored.rows = 20000, given.stored.seconds = 0.2;
    bench::bench_store(given.stored, report);
  } else if (part.serving.parsed()) {
    if (given.quick) given.served.seconds = 0.2;
    bench::bench_serve(given.served, report);
  } else if (part.embedding.parsed()) {
    bench::bench_embeddings(device, given.threads, given.quick, given.only, report);
  } else if (part.cache.parsed()) {
    bench::bench_cache(device, given.quick, given.only, given.cache_rows, report);
  } else if (part.reader.parsed()) {
    bench::ReaderCase& reading = given.reading;
    reading.threads = given.threads;
    reading.only = given.only;
    if (given.quick) reading.rows = 3000, reading.passes = 1;
    bench::bench_reader(reading, report);
  } else {
    Runtime runtime(device, {.threads = given.threads, .seed = 1});
    Context ctx(runtime, runtime.compute_stream());
    if (part.index.parsed()) bench_all_indices(runtime, ctx, given.quick, report);
    if (part.rows.parsed()) bench_all_rows(ctx, given.quick, report);
  }
  if (!given.json.empty()) report.write_json(given.json);
}

int main_of(int argc, char** argv) {
  Arguments given;
  CommandLine app("bench",
                  "Measures parts of huge_ctr on this machine. Prints medians in steady state and checks every result.",
                  kExamples);
  const Subcommands part(app);
  add_step_options(part.step, part.scale, given);
  add_score_options(part.score, given);
  add_store_options(part.store, given);
  add_serve_options(part.serving, given);
  for (const CommandLine& each : part.all()) add_common_options(each, given);
  add_reader_options(part.reader, given);
  CommandLine embedding = part.embedding, cache = part.cache;
  embedding.add_option("--only", given.only, "only cases whose name contains this word");
  cache.add_option("--only", given.only, "only cases whose name contains one of these words, separated by '|'");
  cache.add_option("--rows", given.cache_rows, "rows of the tables of dim 128").range(1, 1 << 30).show_default();
  return run_tool(app, argc, argv, [&] { run(part, given); });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { hctr::end_process(hctr::main_of(argc, argv)); }
