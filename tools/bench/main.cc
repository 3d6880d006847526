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
  bench::ScaleCase scale;
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

int main_of(int argc, char** argv) {
  Arguments given;
  CommandLine app("bench",
                  "Measures parts of huge_ctr on this machine. Prints medians in steady state and checks every result.",
                  kExamples);
  CommandLine index = app.add_subcommand("index", "the hash index from keys to rows");
  CommandLine rows = app.add_subcommand("rows", "rows of tables: lookup and sum, sort, backward and update");
  CommandLine embedding =
      app.add_subcommand("embedding", "sets of embedding tables, as other programs and frameworks call them");
  CommandLine cache = app.add_subcommand("cache", "look-ups in a store through its GPU cache");
  CommandLine reader = app.add_subcommand("reader", "reading data of every format, from the page cache into batches");
  CommandLine step = app.add_subcommand("step", "whole training steps of a model, without reading");
  CommandLine scale =
      app.add_subcommand("scale", "training steps of a model on one and on several ranks of this machine");
  bench::StepCase& steps = given.scale.step;
  for (CommandLine* part : {&step, &scale}) {
    part->add_option("config", steps.config, "the model and its data: a JSON file").required().existing_file();
    part->add_option("--batch", steps.batch,
                     part == &step ? "samples per batch; 0: as in the config"
                                   : "samples per batch of one rank; 0: as in the config")
        .non_negative();
    part->add_option("--warm-up", steps.warm_up, "warm-up steps, after which all rows exist")
        .range(0, 1000000)
        .show_default();
    part->add_option("--times", steps.times, "steps to measure").range(10, 1000000).show_default();
  }
  scale
      .add_option("--ranks", given.scale.ranks,
                  "numbers of ranks to measure, one after the other; speeds are "
                  "relative to the first number")
      .range(1, 1024)
      .show_default();
  scale.add_flag("--strong", given.scale.strong, "strong scaling: the batch is divided among all ranks");
  std::vector<std::string> rules;
  scale.add_option("--rules", rules, "the only rules of the exchange that apply; default: those of training")
      .one_of({"none", "packed_gradients", "vectors_in_pieces", "own_copies", "skip_known_early"});
  bench::SimulateCase simulate;
  scale.add_option(
      "--simulate", simulate.cluster,
      "only predict steps on these hosts: hosts=16,gpus=8,network=8xib400,links=nvlink; network: the adapters of a "
      "host by Gb/s (ib400, eth100), or GB/s:us; links inside a host: nvlink, pcie or GB/s:us of a GPU");
  scale.add_option("--gpu-name", simulate.gpu, "a known GPU to predict for, such as H100");
  scale.add_option("--measured", simulate.measured,
                   "measured step times of one GPU as SAMPLES:MS, used to scale predictions");
  CommandLine score = app.add_subcommand("score", "scoring with a saved model, from memory to memory");
  bench::ScoreCase scoring;
  score.add_option("model", scoring.model, "a run folder, a checkpoint or a prefix of model files").required();
  score.add_option("--config", scoring.config, "the model's config; default: the one saved with it").existing_file();
  score.add_option("--batches", scoring.batches, "samples of a call").range(1, 1 << 30).show_default();
  score.add_option("--change", scoring.changes, "changes of config fields, such as solver.mixed_precision=bf16");
  score.add_option("--seconds", scoring.seconds, "to measure each batch size for").positive_number().show_default();
  std::vector<std::string> scoring_without;
  score.add_option("--without", scoring_without, "ways to score faster that are switched off")
      .one_of({"few_rows", "kernel_copies", "polling", "pieces", "predictions_only", "packed_weights"});
  score.add_option("--few-rows", scoring.few_rows, "the largest batch for the GEMM for few samples; -1: as in a Model");
  score.add_option("--least-piece", scoring.rules.least_piece, "fewest samples of a piece of a batch").show_default();
  CommandLine store = app.add_subcommand("store",
                                         "look-ups in Redis and RocksDB, compared with the benchmark "
                                         "programs of both");
  bench::StoreCase stored;
  store.add_option("--redis", stored.redis, "HOST:PORT of a server, or of cluster nodes separated by commas");
  store.add_option("--rocksdb", stored.rocksdb, "a new folder for databases, which are removed at the end");
  store.add_option("--rows", stored.rows, "of the table").range(1, 1 << 30).show_default();
  store.add_option("--dim", stored.dim, "elements of a row").range(1, 1 << 20).show_default();
  store.add_option("--batch", stored.batch, "keys of a request").range(1, 1 << 24).show_default();
  CommandLine serving = app.add_subcommand("serve",
                                           "a service with KServe's v2 protocol, such as huge_ctr serve "
                                           "or Triton");
  bench::ServeCase served;
  serving.add_option("model", served.model, "name of the model in the service").required();
  serving.add_option("--address", served.address, "HOST:PORT").show_default();
  serving.add_flag("--grpc", served.grpc, "the port is that of gRPC");
  serving.add_option("--samples", served.samples, "samples of a request").range(1, 1 << 20).show_default();
  serving.add_option("--clients", served.clients, "number of connections, each with one request at a time")
      .range(1, 10000)
      .show_default();
  serving
      .add_option("--rate", served.rate,
                  "requests per second at random times; omitted: each connection sends a "
                  "request after each answer")
      .positive_number();
  serving.add_option("--seconds", served.seconds, "to measure for").positive_number().show_default();
  serving.add_option("--most-key", served.most_key, "upper bound (exclusive) of integers in inputs")
      .positive()
      .show_default();
  serving
      .add_option(
          "--slot-keys", served.slot_keys,
          "the key in column s is random in [s * N, (s + 1) * N), as data_generator writes it for slots of N rows")
      .positive();
  serving.add_option("--alpha", served.alpha, "exponent of the power law of keys; 0: uniform")
      .real_range(0, 10)
      .show_default();
  serving.add_flag("--shared-memory", served.shared_memory,
                   "pass tensors in shared memory; the service runs on this machine with --shared-memory");
  for (CommandLine part : {index, rows, embedding, cache, reader, step, scale, score, store, serving}) {
    part.add_option("--device", given.device, "cpu, cuda, or auto: a GPU if one exists")
        .one_of({"cpu", "cuda", "auto"});
    part.add_option("--json", given.json, "also write the figures to this file");
    part.add_flag("--quick", given.quick, "tiny sizes, for a smoke test");
    part.add_option("--threads", given.threads, "CPU threads; for the reader, parser threads")
        .range(1, 1024)
        .show_default();
  }
  int64_t samples = 1000000;
  reader.add_option("--samples", samples, "rows of the generated files").range(1, 1 << 30).show_default();
  bench::ReaderCase reading;
  reader.add_option("--ranks", reading.ranks, "read as the first of this number of ranks, which share the set")
      .range(1, 1024)
      .show_default();
  reader.add_option("--shuffle", reading.shuffle, "rows of a shuffle window; 0: the order of the set").non_negative();
  std::string only;
  bool serial = false;
  reader.add_flag("--serial", serial, "also measure the single-threaded parts");
  reader.add_option("--only", only, "only formats whose name contains this word");
  embedding.add_option("--only", only, "only cases whose name contains this word");
  cache.add_option("--only", only, "only cases whose name contains this word");
  std::string data;
  reader.add_option("config", data, "read the training data of this config instead: a JSON file").existing_file();
  return run_tool(app, argc, argv, [&] {
    expect_no_input(given.json, "--json", {steps.config, data});
    const Device device = device_of(given.device);
    if (!device.is_cuda()) ops::load_blas(program_surroundings());
    bench::Report report(describe(device));
    print_formatted("%s\n", describe(device).c_str());
    steps.threads = given.threads;
    if (given.quick) steps.times = 10;
    if (step.parsed()) {
      bench::bench_step(device, steps, report);
    } else if (scale.parsed() && !simulate.cluster.empty()) {
      simulate.config = steps.config;
      simulate.batch = steps.batch;
      simulate.strong = given.scale.strong;
      bench::simulate_scale(device, simulate, report);
    } else if (scale.parsed()) {
      if (!rules.empty()) given.scale.rules = bench::rules_of(rules);
      bench::bench_scale(devices_of(given.device, given.scale.ranks), given.scale, report);
    } else if (score.parsed()) {
      scoring.device = device.is_cuda() ? DeviceChoice::cuda : DeviceChoice::cpu;
      scoring.threads = given.threads;
      if (given.quick) scoring.seconds = 0;
      if (scoring.few_rows >= 0)
        scoring.rules.forward.few_rows_f32 = scoring.rules.forward.few_rows_half = scoring.few_rows;
      for (const std::string& way : scoring_without) bench::switch_off(scoring.rules, way);
      bench::bench_score(scoring, report);
    } else if (store.parsed()) {
      stored.threads = given.threads;
      if (given.quick) stored.rows = 20000, stored.seconds = 0.2;
      bench::bench_store(stored, report);
    } else if (serving.parsed()) {
      if (given.quick) served.seconds = 0.2;
      bench::bench_serve(served, report);
    } else if (embedding.parsed()) {
      bench::bench_embeddings(device, given.threads, given.quick, only, report);
    } else if (cache.parsed()) {
      bench::bench_cache(device, given.quick, only, report);
    } else if (reader.parsed()) {
      const bench::ReaderCase one{.rows = given.quick ? 3000 : samples,
                                  .threads = given.threads,
                                  .ranks = reading.ranks,
                                  .shuffle = reading.shuffle,
                                  .passes = given.quick ? 1 : 5,
                                  .only = only,
                                  .serial = serial,
                                  .config = data};
      bench::bench_reader(one, report);
    } else {
      Runtime runtime(device, {.threads = given.threads, .seed = 1});
      Context ctx(runtime, runtime.compute_stream());
      if (index.parsed()) bench_all_indices(runtime, ctx, given.quick, report);
      if (rows.parsed()) bench_all_rows(ctx, given.quick, report);
    }
    if (!given.json.empty()) report.write_json(given.json);
  });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { hctr::end_process(hctr::main_of(argc, argv)); }
