// Training with a config, and checking one.
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

/// Whose encoding of the data is used where the config's differs from that saved with a model.
enum class EncodingChoice { same, config, model };

/// What every command that uses a model is given.
struct JobOptions {
  std::filesystem::path config;      ///< "-": the standard input
  std::vector<std::string> changes;  ///< fields of the config, "solver.batchsize=1024"; the last of a field counts
  DeviceChoice device = DeviceChoice::automatic;
  EncodingChoice encoding = EncodingChoice::same;  ///< same: a difference from a saved model is an error
  bool allow_unmatched = false;                    ///< a slot or label whose values match nothing at all is no error
  bool strict = false;                             ///< warnings about the config become errors
  bool sync_launches = false;                      ///< wait after every GPU kernel, to find one that faults
  std::optional<int> threads;                      ///< CPU threads for operators; nothing: all usable cores
  int comm_timeout = 25;  ///< seconds that ranks wait for another rank in a step; 0: without limit
  int peer_timeout = 20;  ///< seconds for a sign of life of another process, which each gives every second
  // Without MPI, in seconds:
  int join_timeout = 300;                  ///< for all processes of a job to be there
  int restart_wait = 60;                   ///< after a restart, for processes that may be lost
  Attempt* attempt = nullptr;              ///< of a process that is started again when it fails
  const std::atomic<int>* stop = nullptr;  ///< when not 0, a signal number: work ends after the current step
  Surroundings surroundings{};             ///< the environment, who reads the log, what a lost process means
};

struct TrainOptions : JobOptions {
  std::filesystem::path run_dir;  ///< empty: a new folder under runs/
  /// Where training goes on from: "latest", or the folder of a checkpoint or of several; empty: it starts anew.
  std::string resume;
  std::optional<int64_t> seed;      ///< instead of the config's
  std::optional<int64_t> max_iter;  ///< instead of the config's length
  bool profile = false;             ///< measure some steps in parts, and write profile.json
  /// Gets each line of metrics.jsonl, without its end, in place of lines for people; null: people get them.
  std::function<void(std::string_view line)> lines{};
  std::filesystem::path metrics_file;  ///< for Prometheus, rewritten with every line of metrics; empty: none
  std::vector<std::string> command;    ///< the command line, for run.json
  /// What saving the model needs is held in it, and training ends with an error, and saves the model, once it has been
  /// released, as a handler of operator new does; null: nothing is held. Outlives the call.
  MemoryReserve* reserve = nullptr;
};

/// The result of a run, as written to summary.json.
struct TrainSummary {
  int rank = 0;  ///< the first rank of this process; the summary of rank 0 is complete
  std::string device;
  int64_t iterations = 0, samples = 0;
  double seconds = 0, samples_per_second = 0;
  double final_loss = 0;
  std::map<std::string, double> metrics;         ///< of the last evaluation, by name
  std::map<std::string, std::string> undefined;  ///< of those that are NaN: why
  std::map<std::string, double> best_possible;   ///< the metrics that the truth behind generated data reaches
  int64_t skipped_records = 0;                   ///< bad records that were skipped
  int64_t skipped_steps = 0;                     ///< fp16: steps whose gradients overflowed
  std::optional<double> loss_scale;              ///< fp16: the scale at the end
  std::map<std::string, std::map<std::string, int64_t>>
      tables;                   ///< counts of rows and keys of tables that have a row policy
  std::vector<int64_t> memory;  ///< by rank: bytes in use at the end of training, on its GPU or in its process
  /// Bytes of weights, activations, rows of each table with their states. Empty on a run that had nothing to do.
  std::vector<std::pair<std::string, int64_t>> memory_parts;
  /// Bytes that all ranks have sent to other hosts for embeddings, and how many messages of the largest size would have
  /// been. Nothing on one host.
  struct BetweenHosts {
    int64_t sent = 0, of_full_size = 0;
  };
  std::optional<BetweenHosts> between_hosts;
  std::filesystem::path run_dir;
  std::vector<std::filesystem::path> model_files;
  /// Of a run that was stopped: the checkpoint of its last iteration, in place of model files.
  std::filesystem::path checkpoint;
  bool interrupted = false;  ///< ended by TrainOptions::stop before it was complete
  int stop_signal = 0;       ///< the value of TrainOptions::stop that did
  /// What ended training early: the metric whose threshold was reached, or "early_stopping".
  std::optional<std::string> stopped_at;
  /// With early stopping: the iteration of the final model, and its metrics.
  std::optional<int64_t> best_iteration;
  std::map<std::string, double> best_metrics;
};

/// Trains as the config says, on as many ranks as it names. Writes the run folder and the snapshot files, and reports
/// progress to the log. As one of several processes (mpirun) it trains together with the others: only the process of
/// rank 0 writes, and an error ends all processes, as the surroundings say. Errors: Error of any kind, the first of any
/// rank.
HCTR_API TrainSummary train(const TrainOptions&);

struct CheckOptions : JobOptions {
  std::optional<double> gpu_memory;  ///< GiB that each GPU has; nothing: of the GPU that is named, or that is there
  std::optional<int64_t> gpus;       ///< instead of those that the config names
  std::string gpu_name;              ///< of a known GPU; empty: the one that is there
  bool json = false;                 ///< the result as JSON
  /// What the data have, by slot of a record.
  struct Slot {
    double keys = 0;       ///< of a sample, the mean
    int64_t distinct = 0;  ///< different keys
  };
  std::vector<Slot> slots;  ///< empty: not counted
};

/// Checks a config: reads it, connects the layers, computes every shape. Needs no GPU and no data files. Returns the
/// layer table, the plan on several GPUs, the memory of each, the expected time of a step where the GPU is known, and
/// which folders cannot be written; as text or JSON. `note` is called with each warning and note, a line each.
/// Errors: Error(config) with every problem found; Error(usage) for a GPU of an unknown name.
HCTR_API std::string check(const CheckOptions&, const std::function<void(std::string_view)>& note);

}  // namespace hctr
