#include "train/progress_line.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "core/base/progress.h"

namespace hctr {
namespace {

std::string gigabytes(int64_t bytes) {
  const double value = static_cast<double>(bytes) / 1e9;
  return formatted(value < 10 ? "%.2f" : "%.1f", value);
}

std::string memory_text(const DisplayFigures& at) {
  if (!at.gpu_memory && !at.host_memory) return "";
  std::string text = ", mem ";
  if (at.gpu_memory) text += gigabytes(*at.gpu_memory);
  if (at.gpu_memory && at.host_memory) text += "+";
  if (at.host_memory) text += gigabytes(*at.host_memory);
  return text + " GB";
}

}  // namespace

std::string progress_line(const DisplayFigures& at) {
  const std::string iteration = cat("Iter: ", at.iteration);
  const std::string epoch = at.epoch ? formatted(" epoch %.2f", *at.epoch) : "";
  const std::string numbers =
      cat(" loss ", formatted(std::abs(at.mean_loss) < 1e4 ? "%.6f" : "%.6g", at.mean_loss), " lr ",
          formatted("%.4g", at.learning_rate), " | ", with_unit_prefix(at.samples_per_second), " samples/s, wait ",
          formatted("%.0f", 100 * std::clamp(at.reader_wait, 0.0, 1.0)), " %");
  std::string share =
      at.reads_from_gpu ? formatted(", rows %.1f %% from GPU", 100 * std::clamp(*at.reads_from_gpu, 0.0, 1.0)) : "";
  if (at.rows_from_disk)
    share += formatted(", rows %.1f %% from disk", 100 * std::clamp(*at.rows_from_disk, 0.0, 1.0)) +
             formatted(", wait %.0f %%", 100 * std::clamp(at.disk_wait, 0.0, 1.0));
  const std::string left = at.seconds_left ? cat(", ", readable_time(std::max(*at.seconds_left, 0.0)), " left") : "";
  for (const std::string& line : {iteration + epoch + numbers + share + memory_text(at) + left,
                                  iteration + epoch + numbers + share + left, iteration + numbers + share + left})
    if (line.size() <= kProgressColumns) return line;
  return iteration + numbers + left;
}

}  // namespace hctr
