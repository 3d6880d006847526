// The line that a training run logs at each display.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hctr {

/// The values that a display shows.
struct DisplayFigures {
  int64_t iteration = 0;
  std::optional<double> epoch;         ///< passes over the data so far; none if the size of the set is unknown
  double mean_loss = 0;                ///< mean over the samples since the last display
  double learning_rate = 0;            ///< learning rate of the last step
  double samples_per_second = 0;       ///< rate since the last display, without evaluations
  double reader_wait = 0;              ///< fraction of the time since the last display in which steps waited for data
  std::optional<int64_t> gpu_memory;   ///< bytes in use on the GPU
  std::optional<int64_t> host_memory;  ///< resident memory of the process in bytes
  /// Fraction of row reads since the last display that were served from the GPU; none if all rows are on the GPU.
  std::optional<double> reads_from_gpu{};
  /// Since the last display: the fraction of rows of training batches that came from disk, and the fraction of time in
  /// which steps waited for these rows. None if all rows are in memory.
  std::optional<double> rows_from_disk{};
  double disk_wait = 0;
  std::optional<double> seconds_left = 0;  ///< none if the length of the run is unknown
};

/// The maximum width of the line.
inline constexpr size_t kProgressColumns = 120;

/// Formats "Iter: 200 epoch 1.25 loss 0.456789 lr 0.001 | 12.3 M samples/s, wait 2 %, mem 12.3+2.1 GB, 3 min 05 s
/// left". Memory is that of the GPU, then of the process. With rows in host memory, ", rows 93.1 % from GPU" follows
/// the wait. With rows on disk, ", rows 1.3 % from disk, wait 12 %" follows. A line that exceeds kProgressColumns drops
/// memory, then epoch, then rows.
std::string progress_line(const DisplayFigures&);

}  // namespace hctr
