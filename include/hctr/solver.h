// Trains with a config, and checks one.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hctr/export.h"
#include "hctr/surroundings.h"

namespace hctr {

class MemoryReserve;
struct Attempt;

enum class DeviceChoice { automatic, cpu, cuda };

/// The encoding to use if the config's differs from the one saved with a model.
enum class EncodingChoice { same, config, model };

/// The options of every command that uses a model.
struct JobOptions {
  std::filesystem::path config;      ///< "-": the standard input
  std::vector<std::string> changes;  ///< fields of the config, "solver.batchsize=1024"; later changes of a field win
  DeviceChoice device = DeviceChoice::automatic;
  EncodingChoice encoding = EncodingChoice::same;  ///< same: a difference from a saved model is an error
  bool allow_unmatched = false;                    ///< a slot or label whose values match nothing is not an error
  bool strict = false;                             ///< warnings about the config become errors
  bool sync_launches = false;                      ///< waits after every GPU kernel, to find a faulty one
  std::optional<int> threads;                      ///< CPU threads for operators; none: all usable cores
  int comm_timeout = 25;  ///< seconds that ranks wait for another rank in a step; 0: no timeout
  int peer_timeout = 20;  ///< seconds to wait for another process's heartbeat, sent every second
  // Without MPI, in seconds:
  int join_timeout = 300;                  ///< until all processes of a job have joined
  int restart_wait = 60;                   ///< after a restart, for processes that may be lost
  Attempt* attempt = nullptr;              ///< for a process that is restarted when it fails
  const std::atomic<int>* stop = nullptr;  ///< when nonzero, a signal number: work ends after the current step
  Surroundings surroundings{};             ///< environment, log, reaction to a lost process
};

struct TrainOptions : JobOptions {
  std::filesystem::path run_dir;  ///< empty: a new folder under runs/
  /// The checkpoint to resume from: "latest", its folder, or a folder of several; empty: a new run.
  std::string resume;
  std::optional<int64_t> seed;      ///< replaces the config's
  std::optional<int64_t> max_iter;  ///< replaces the config's length
  bool profile = false;             ///< measures the parts of some steps, and writes profile.json
  /// Receives each line of metrics.jsonl, without its end, instead of the log; null: the log gets lines.
  std::function<void(std::string_view line)> lines{};
  std::filesystem::path metrics_file;  ///< for Prometheus, rewritten with every metrics line; empty: none
  std::vector<std::string> command;    ///< the command line, for run.json
  /// Memory held in reserve for saving the model; null: none. When it is released, as a handler of operator new does,
  /// training ends with an error and saves the model. Outlives the call.
  MemoryReserve* reserve = nullptr;
};

/// The result of a run, as written to summary.json.
struct TrainSummary {
  int rank = 0;  ///< the first rank of this process; only rank 0's summary is complete
  std::string device;
  int64_t iterations = 0, samples = 0;
  double seconds = 0, samples_per_second = 0;
  double final_loss = 0;
  std::map<std::string, double> metrics;         ///< of the last evaluation, by name
  std::map<std::string, std::string> undefined;  ///< for NaN metrics: the reason
  std::map<std::string, double> best_possible;   ///< the metrics of the ground truth behind generated data
  int64_t skipped_records = 0;                   ///< bad records that were skipped
  int64_t skipped_steps = 0;                     ///< fp16: steps whose gradients overflowed
  std::optional<double> loss_scale;              ///< fp16: the final scale
  std::map<std::string, std::map<std::string, int64_t>> tables;  ///< row and key counts of tables with a row policy
  std::vector<int64_t> memory;  ///< by rank: bytes in use at the end of training, on its GPU or in its process
  /// Bytes of weights, activations, and rows of each table with their states. Empty for a run that had nothing to do.
  std::vector<std::pair<std::string, int64_t>> memory_parts;
  /// Bytes that all ranks have sent to other hosts for embeddings, and the bytes of as many full-size messages. None on
  /// one host.
  struct BetweenHosts {
    int64_t sent = 0, of_full_size = 0;
  };
  std::optional<BetweenHosts> between_hosts;
  std::filesystem::path run_dir;
  std::vector<std::filesystem::path> model_files;
  /// For a stopped run: the checkpoint of its last iteration, which replaces model files.
  std::filesystem::path checkpoint;
  bool interrupted = false;  ///< ended early by TrainOptions::stop
  int stop_signal = 0;       ///< the value of TrainOptions::stop
  /// The reason why training ended early: the metric whose threshold was reached, or "early_stopping".
  std::optional<std::string> stopped_at;
  /// With early stopping: the iteration of the final model, and its metrics.
  std::optional<int64_t> best_iteration;
  std::map<std::string, double> best_metrics;
};

/// Trains as the config says, on as many ranks as it names. Writes the run folder and the snapshot files, and reports
/// progress to the log. As one of several processes (mpirun) it trains together with the others: only rank 0's process
/// writes, and an error ends all processes, as the surroundings say. Errors: Error of any kind, the first of any rank.
HCTR_API TrainSummary train(const TrainOptions&);

struct CheckOptions : JobOptions {
  std::optional<double> gpu_memory;  ///< GiB per GPU; none: the memory of the named GPU, or of this machine's
  std::optional<int64_t> gpus;       ///< replaces the config's GPUs
  std::string gpu_name;              ///< a known GPU; empty: this machine's
  bool json = false;                 ///< returns JSON
  /// Statistics of the data, by slot of a record.
  struct Slot {
    double keys = 0;       ///< mean number per sample
    int64_t distinct = 0;  ///< different keys
  };
  std::vector<Slot> slots;  ///< empty: not counted
};

/// Checks a config: reads it, connects the layers, computes every shape. Needs no GPU and no data files. Returns, as
/// text or JSON, the layer table, the placement plan on several GPUs, the memory of each, the expected time of a step
/// if the GPU is known, and the folders that are not writable. Calls `note` with each warning and note, one line each.
/// Errors: Error(config) with every problem found; Error(usage) for an unknown GPU name.
HCTR_API std::string check(const CheckOptions&, const std::function<void(std::string_view)>& note);

}  // namespace hctr
