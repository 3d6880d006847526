// Training and checking a config, as the program does it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

enum class DeviceChoice { automatic, cpu, cuda };

struct TrainOptions {
  std::filesystem::path config;
  DeviceChoice device = DeviceChoice::automatic;
  std::filesystem::path run_dir;    ///< empty: a new folder under runs/
  bool strict = false;              ///< warnings about the config become errors
  bool sync_launches = false;       ///< wait after every GPU kernel, to find one that faults
  std::optional<int> threads;       ///< CPU threads for operators; nothing: all usable cores
  std::optional<int64_t> seed;      ///< instead of the config's
  std::optional<int64_t> max_iter;  ///< instead of the config's length
  int comm_timeout = 25;            ///< seconds that ranks wait in a step for one that does not come; 0: for ever
  const std::atomic<bool>* stop = nullptr;  ///< set by a signal: training ends after the step under way
};

/// What a run achieved; the content of summary.json.
struct TrainSummary {
  int rank = 0;  ///< the first of this process; others than 0 have nothing to tell
  std::string device;
  int64_t iterations = 0, samples = 0;
  double seconds = 0, samples_per_second = 0;
  double final_loss = 0;
  std::map<std::string, double> metrics;        ///< of the last evaluation, by name
  std::map<std::string, double> best_possible;  ///< the same metrics of the truth behind the data, where it is known
  int64_t skipped_records = 0;                  ///< bad records that were left out
  int64_t skipped_steps = 0;                    ///< fp16: steps whose gradients overflowed
  std::optional<double> loss_scale;             ///< fp16: the scale at the end
  std::map<std::string, std::map<std::string, int64_t>>
      tables;                   ///< what became of rows and keys of tables that have a policy for them
  std::vector<int64_t> memory;  ///< bytes in use at the end of training, rank by rank: of its GPU, or of its process
  std::filesystem::path run_dir;
  std::vector<std::filesystem::path> model_files;
  bool interrupted = false;
  std::optional<std::string> stopped_at;  ///< the metric whose threshold ended training
};

/// Trains as the config says, on as many ranks as it names. Writes the run folder and the snapshot files; reports to
/// the standard error stream. Started as one of several processes (mpirun), it trains together with the others, and
/// only that of rank 0 writes; then an error ends all processes. Errors: Error of any kind, the first of any rank.
TrainSummary train(const TrainOptions&);

/// Judges the config alone: reads it, wires the graph, settles every shape. Needs no GPU, and no data file.
/// Returns the layer table. `note` gets one line for everything worth knowing that is no error.
/// Errors: Error(config) with every problem found.
std::string check(const std::filesystem::path& config, bool strict, const std::function<void(std::string_view)>& note);

}  // namespace hctr
