// The line that a training run shows at each display.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hctr {

/// What is known at a display.
struct DisplayFigures {
  int64_t iteration = 0;
  std::optional<double> epoch;         ///< passes over the data so far; none: the size of the set is not known
  double mean_loss = 0;                ///< of the samples since the last display
  double learning_rate = 0;            ///< of the last step
  double samples_per_second = 0;       ///< since the last display, without evaluations
  double reader_wait = 0;              ///< share of that time in which steps waited for data
  std::optional<int64_t> gpu_memory;   ///< bytes in use on the GPU
  std::optional<int64_t> host_memory;  ///< bytes that the process has in memory
  /// Of the reads of rows since the last display, the share whose rows were on the GPU; none: all rows are there.
  std::optional<double> reads_from_gpu{};
  /// Of the rows of training batches since the last display, the share that came from the disk, and the share of the
  /// time in which steps waited for it; none: all rows are in memory.
  std::optional<double> rows_from_disk{};
  double disk_wait = 0;
  std::optional<double> seconds_left = 0;  ///< none: the length of the run is not known
};

/// The most columns of the line.
inline constexpr size_t kProgressColumns = 120;

/// "Iter: 200 epoch 1.25 loss 0.456789 lr 0.001 | 12.3 M samples/s, wait 2 %, mem 12.3+2.1 GB, 3 min 05 s left". Memory
/// is that of the GPU and, behind the +, of the process. With rows in host memory, ", rows 93.1 % from GPU" follows the
/// wait, and with rows on a disk ", rows 1.3 % from disk, wait 12 %". Where the line would exceed kProgressColumns,
/// memory, the epoch and at last the rows are left out.
std::string progress_line(const DisplayFigures&);

}  // namespace hctr
