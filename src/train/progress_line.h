// The line that a training run prints at each display.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hctr {

/// The figures at a display.
struct DisplayFigures {
  int64_t iteration = 0;
  std::optional<double> epoch;         ///< passes over the data so far; none: the size of the set is unknown
  double mean_loss = 0;                ///< over the samples since the last display
  double learning_rate = 0;            ///< of the last step
  double samples_per_second = 0;       ///< since the last display, without evaluations
  double reader_wait = 0;              ///< share of that time in which steps waited for data
  std::optional<int64_t> gpu_memory;   ///< bytes in use on the GPU
  std::optional<int64_t> host_memory;  ///< resident memory of the process in bytes
  /// Since the last display, the share of row reads that were on the GPU; none: all rows are there.
  std::optional<double> reads_from_gpu{};
  /// Since the last display, the share of rows of training batches that came from disk, and the share of time in which
  /// steps waited for them; none: all rows are in memory.
  std::optional<double> rows_from_disk{};
  double disk_wait = 0;
  std::optional<double> seconds_left = 0;  ///< none: the length of the run is unknown
};

/// The maximum width of the line.
inline constexpr size_t kProgressColumns = 120;

/// "Iter: 200 epoch 1.25 loss 0.456789 lr 0.001 | 12.3 M samples/s, wait 2 %, mem 12.3+2.1 GB, 3 min 05 s left". Memory
/// is that of the GPU and, after the +, of the process. With rows in host memory, ", rows 93.1 % from GPU" follows the
/// wait; with rows on disk, ", rows 1.3 % from disk, wait 12 %". If the line would exceed kProgressColumns, memory,
/// epoch and finally rows are dropped.
std::string progress_line(const DisplayFigures&);

}  // namespace hctr
