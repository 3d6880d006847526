#include "score/batch_reading.h"

#include <algorithm>

#include "core/base/lasting_threads.h"

namespace hctr {
namespace {

KeyWidth key_width(const SolverSection& solver) {
  if (!solver.input_key_type) return KeyWidth::detect;
  return *solver.input_key_type == KeyType::i32 ? KeyWidth::u32 : KeyWidth::i64;
}

/// Number of reader threads. One GPU can train on samples faster than eight threads parse them. Several ranks share the
/// cores, so each has fewer threads.
int64_t reader_workers(const Config& config, int ranks) {
  const int cores = usable_cores();
  return config.data.num_workers.value_or(ranks == 1 ? std::clamp(cores * 3 / 4, 1, 12) : std::clamp(cores / 2, 1, 8));
}

}  // namespace

ReaderOptions reader_options(const Config& config, int64_t batch) {
  const int64_t workers = reader_workers(config, 1);
  return {.batch = batch, .workers = static_cast<int>(workers), .repeat = false, .key_width = key_width(config.solver)};
}

ReaderOptions reader_options(const Config& config, const Communicator& comm, int64_t batch, bool repeat) {
  ReaderOptions options = reader_options(config, batch);
  options.repeat = repeat;
  options.workers = static_cast<int>(reader_workers(config, comm.size()));
  options.rank = comm.rank();
  options.ranks = comm.size();
  return options;
}

Waited wait_for_batch(Reader& reader, const std::atomic<int>* stop, std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kLook(50);  // maximum delay until a stop signal is noticed
  for (auto left = limit; !reader.wait(kLook); left -= kLook) {
    if (stop && *stop != 0) return Waited::stopped;
    if (left <= kLook) return Waited::limit;
  }
  return Waited::batch;
}

void leave_behind_if_stuck(std::unique_ptr<Reader>& reader, BatchRing& ring) {
  if (reader->wait(std::chrono::milliseconds(0))) return;
  (void)reader.release();
  (void)new BatchRing(std::move(ring));
  threads_outlive_main();
}

BatchTensors batch_tensors(const BatchRing& ring, int buffer, size_t sparse_inputs) {
  BatchTensors batch{ring.device_state(buffer), ring.label(buffer), ring.dense(buffer), {}, {}};
  for (size_t t = 0; t < sparse_inputs; ++t) {
    batch.keys.push_back(ring.keys(buffer, t));
    batch.offsets.push_back(ring.offsets(buffer, t));
  }
  return batch;
}

}  // namespace hctr
