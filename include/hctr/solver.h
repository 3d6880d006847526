// Trains the model of a config, and checks a config.
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

/// If the encoding in the config differs from the one that was saved with a model: which of them to use.
enum class EncodingChoice { same, config, model };

/// Options shared by all commands that use a model.
struct JobOptions {
  std::filesystem::path config;  ///< "-": the standard input
  /// changes of config fields, "solver.batchsize=1024"; the last change of a field wins
  std::vector<std::string> changes;
  DeviceChoice device = DeviceChoice::automatic;
  EncodingChoice encoding = EncodingChoice::same;  ///< same: a difference between the two encodings is an error
  bool allow_unmatched = false;                    ///< accepts slots and labels of which no value matches anything
  bool strict = false;                             ///< turns warnings about the config into errors
  bool sync_launches = false;                      ///< waits after each GPU kernel, so that errors name the faulty one
  std::optional<int> threads;                      ///< CPU threads for operators; none: all usable cores
  int comm_timeout = 25;                           ///< seconds that a step waits for another rank; 0: no timeout
  /// timeout in seconds for the next heartbeat of another process; heartbeats are sent every second
  int peer_timeout = 20;
  // Timeouts without MPI, in seconds:
  int join_timeout = 300;  ///< timeout until all processes of a job have joined
  /// timeout for missing processes to join after a restart; training then continues without them
  int restart_wait = 60;
  Attempt* attempt = nullptr;              ///< set in a worker process that a keeper process restarts after a failure
  const std::atomic<int>* stop = nullptr;  ///< a signal number other than 0 ends the work after the current step
  Surroundings surroundings{};             ///< environment, log, and what to do when a process is lost
};

struct TrainOptions : JobOptions {
  std::filesystem::path run_dir;  ///< empty: a new folder under runs/
  /// The checkpoint to resume from: "latest", a checkpoint's folder, or a folder of checkpoints; empty: a new run.
  std::string resume;
  std::optional<int64_t> seed;      ///< replaces the config's seed
  std::optional<int64_t> max_iter;  ///< replaces the config's number of iterations
  bool profile = false;             ///< measures the parts of some steps, and writes profile.json
  /// Receives each line of metrics.jsonl, without the newline, instead of the log; null: the log receives these lines.
  std::function<void(std::string_view line)> lines{};
  std::filesystem::path metrics_file;  ///< a file for Prometheus, rewritten with every metrics line; empty: none
  std::vector<std::string> command;    ///< the command line to record in run.json
  /// Reserved memory for saving the model; null: none. A handler of operator new may release the reserve when memory
  /// runs out. Training then saves the model and ends with an error. Must outlive the call.
  MemoryReserve* reserve = nullptr;
};

/// The result of a run, as written to summary.json.
struct TrainSummary {
  int rank = 0;  ///< the first rank of this process; only rank 0's summary is complete
  std::string device;
  int64_t iterations = 0, samples = 0;
  double seconds = 0, samples_per_second = 0;
  double final_loss = 0;
  std::map<std::string, double> metrics;         ///< metrics of the last evaluation, by name
  std::map<std::string, std::string> undefined;  ///< the reason for each NaN metric
  std::map<std::string, double> best_possible;   ///< for generated data: the metrics of the ground truth
  int64_t skipped_records = 0;                   ///< bad records that were skipped
  int64_t skipped_steps = 0;                     ///< fp16: steps whose gradients overflowed
  std::optional<double> loss_scale;              ///< fp16: the final loss scale
  std::map<std::string, std::map<std::string, int64_t>> tables;  ///< row and key counts of tables with a row policy
  /// for each rank: bytes that the rank's GPU (on a CPU: the rank's process) uses at the end of training
  std::vector<int64_t> memory;
  /// Bytes of weights, of activations, and of each table's rows with their states. Empty if the run had nothing left to
  /// train.
  std::vector<std::pair<std::string, int64_t>> memory_parts;
  /// Bytes that all ranks have sent to other hosts for embeddings, and the bytes of these messages if each had its
  /// maximum size. None on one host.
  struct BetweenHosts {
    int64_t sent = 0, of_full_size = 0;
  };
  std::optional<BetweenHosts> between_hosts;
  std::filesystem::path run_dir;
  std::vector<std::filesystem::path> model_files;
  /// If the run was stopped: the checkpoint of the last iteration, which was written in place of model files.
  std::filesystem::path checkpoint;
  bool interrupted = false;  ///< TrainOptions::stop ended training early
  int stop_signal = 0;       ///< the value of TrainOptions::stop
  /// Why training ended early: the metric that reached its threshold, or "early_stopping".
  std::optional<std::string> stopped_at;
  /// With early stopping: the iteration and the metrics of the best model, which is the final model.
  std::optional<int64_t> best_iteration;
  std::map<std::string, double> best_metrics;
};

/// Trains a config on the ranks that the config names. Writes the run folder and the snapshot files, and reports
/// progress to the log. Several processes (mpirun) train together: only rank 0's process writes files, and an error
/// ends all processes (Surroundings::end_process). Errors: Error of any kind; if several ranks fail, the first error.
HCTR_API TrainSummary train(const TrainOptions&);

struct CheckOptions : JobOptions {
  std::optional<double> gpu_memory;  ///< GiB per GPU; none: the memory of the GPU `gpu_name`, or of this machine's GPU
  std::optional<int64_t> gpus;       ///< replaces the config's number of GPUs
  std::string gpu_name;              ///< name of a GPU model that the program knows; empty: this machine's GPU
  bool json = false;                 ///< returns JSON instead of text
  /// Statistics of the data, for each slot of a record.
  struct Slot {
    double keys = 0;       ///< mean number of keys per sample
    int64_t distinct = 0;  ///< number of distinct keys
  };
  std::vector<Slot> slots;  ///< empty if the data were not counted
};

/// Checks a config: reads it, connects the layers, computes every shape. Needs no GPU and no data files. Returns, as
/// text or JSON: the layer table, the placement plan for several GPUs, the memory of each GPU, the expected time of a
/// step if the GPU is known, and the folders that are not writable. Calls `note` with each warning and note, one line
/// per call. Errors: Error(config) with every problem found; Error(usage) for an unknown GPU name.
HCTR_API std::string check(const CheckOptions&, const std::function<void(std::string_view)>& note);

}  // namespace hctr
