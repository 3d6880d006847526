#include "score_bench.h"

#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include "core/base/log.h"
#include "core/device/buffer.h"
#include "formats/data/data_section.h"
#include "infer/config_of_model.h"
#include "infer/sample_arrays.h"
#include "infer/saved_model.h"
#include "infer/served_model.h"
#include "program/program_surroundings.h"
#include "timing.h"

namespace hctr::bench {
namespace {

constexpr int kBatchesInTurn = 8;

/// Samples in memory that a device can copy directly: page-locked for a GPU.
class LockedArrays {
 public:
  LockedArrays(const SampleArrays& arrays, Device device) : arrays_(arrays), dense_(locked(arrays.dense, device)) {
    for (const SampleArrays::Keys& input : arrays.inputs) keys_.push_back(locked(input.keys, device));
  }
  int64_t samples() const { return arrays_.samples; }
  std::vector<InputView> views(int64_t first) const {
    std::vector<InputView> views = arrays_.views(first);
    size_t at = 0;
    if (arrays_.dense_dim > 0) move(views[at++], arrays_.dense.data(), dense_);
    for (size_t i = 0; i < keys_.size(); ++i) move(views[at + i], arrays_.inputs[i].keys.data(), keys_[i]);
    return views;
  }

 private:
  template <class T>
  static HostBuffer locked(const std::vector<T>& values, Device device) {
    HostBuffer memory(device, std::max<size_t>(1, values.size() * sizeof(T)));
    if (!values.empty()) std::memcpy(memory.data(), values.data(), values.size() * sizeof(T));
    return memory;
  }
  static void move(InputView& view, const void* from, const HostBuffer& to) {
    view.data = to.data() + (static_cast<const std::byte*>(view.data) - static_cast<const std::byte*>(from));
  }
  const SampleArrays& arrays_;
  HostBuffer dense_;
  std::vector<HostBuffer> keys_;
};

/// Returns the processor time that all threads of this process have used so far.
double processor_seconds() {
  struct timespec time {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct CallTime {
  double seconds, processor_seconds;
};

/// Returns the median time of a call, and the median processor time.
CallTime time_of_a_call(ServedModel& model, const LockedArrays& arrays, int64_t batch, double limit) {
  const std::vector<ModelTensor>& tensors = model.outputs();
  std::vector<std::vector<float>> scores;
  std::vector<OutputView> outputs;
  for (const ModelTensor& output : tensors) {
    scores.emplace_back(static_cast<size_t>(batch * output.shape.back()));
    outputs.push_back({.name = output.name, .data = scores.back().data()});
  }
  const int64_t places = std::max<int64_t>(1, std::min<int64_t>(kBatchesInTurn, arrays.samples() / batch));
  std::vector<double> times, processor_times;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0;
       times.size() < 7 || std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < limit;
       ++i) {
    const std::vector<InputView> inputs = arrays.views(i % places * batch);
    const double processor_start = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    model.score(batch, inputs, outputs);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i < 5) continue;
    times.push_back(seconds);
    processor_times.push_back(processor_seconds() - processor_start);
  }
  return {median(times), median(processor_times)};
}

/// Returns the resident memory of this process, without unused heap memory.
double resident_bytes() {
  ::malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Bytes of weights, keys and vectors in a model's files.
double bytes_of_files(const SavedModel& model) {
  double bytes = 0;
  std::vector<std::string> files = model.tables;
  files.push_back(model.dense);
  for (const fs::path file : files) {
    if (fs::is_regular_file(file)) bytes += static_cast<double>(fs::file_size(file));
    if (!fs::is_directory(file)) continue;
    for (const auto& part : fs::recursive_directory_iterator(file))
      if (part.is_regular_file()) bytes += static_cast<double>(part.file_size());
  }
  return bytes;
}

}  // namespace

void switch_off(SessionRules& rules, const std::string& way) {
  if (way == "few_rows")
    rules.forward.few_rows_f32 = rules.forward.few_rows_half = 0;
  else if (way == "kernel_copies")
    rules.kernel_copy_bytes = 0;
  else if (way == "polling")
    rules.polls = false;
  else if (way == "pieces")
    rules.least_piece = 0;
  else if (way == "packed_weights")
    rules.packs_weights = false;
  else if (way == "predictions_only")
    rules.forward.losses = true;
  else
    throw Error(Kind::usage, cat("no way to score is named '", way, "'"));
}

void bench_score(const ScoreCase& one, Report& report) {
  ModelOptions options;
  options.model = one.model;
  options.config = one.config;
  options.changes = one.changes;
  options.surroundings = program_surroundings();
  const Config config = config_of_model(options, Log::silent());
  const int64_t most = *std::ranges::max_element(one.batches);
  const SampleArrays arrays = read_sample_arrays(config, training_source(config.data), kBatchesInTurn * most);
  const double before = resident_bytes();
  ServedModel model({.model = one.model,
                     .config = one.config,
                     .changes = one.changes,
                     .device = one.device,
                     .threads = one.threads,
                     .surroundings = options.surroundings},
                    false, one.rules);
  const SavedModel saved = find_saved_model(one.model, config, options.surroundings.environment, Log::silent());
  report.add("score", "weights and tables in files", bytes_of_files(saved) / 1e6, "MB");
  report.add("score", "host memory of the model", (resident_bytes() - before) / 1e6, "MB");
  const LockedArrays locked(arrays, one.device == DeviceChoice::cuda ? Device{DeviceKind::cuda, 0} : Device{});
  for (const int64_t batch : one.batches) {
    if (batch > arrays.samples)
      throw Error(Kind::data,
                  cat("the training data have ", arrays.samples, " samples, fewer than a batch of ", batch));
    const auto [seconds, of_processor] = time_of_a_call(model, locked, batch, one.seconds);
    const std::string where = cat("batch of ", batch);
    report.add("score", where, seconds * 1e6, "us");
    report.add("score", where, static_cast<double>(batch) / seconds / 1e6, "M samples/s");
    report.add("score", where, of_processor * 1e6, "processor us");
  }
}

}  // namespace hctr::bench
