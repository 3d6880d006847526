// Logs the rows in host memory and on disk.
#include <utility>

#include "core/base/progress.h"
#include "score/disk_tables.h"
#include "train/run.h"

namespace hctr {
namespace {

/// The sum of one count over all tables.
int64_t sum_of_counts(const std::map<std::string, std::map<std::string, int64_t>>& counts, const std::string& what) {
  int64_t sum = 0;
  for (const auto& [name, of_table] : counts)
    if (const auto found = of_table.find(what); found != of_table.end()) sum += found->second;
  return sum;
}

}  // namespace

void Run::add_disk_figures(const std::map<std::string, std::map<std::string, int64_t>>& counts,
                           TrainedFigures& figures) {
  const DiskReads now{sum_of_counts(counts, "rows_of_batches"), sum_of_counts(counts, "rows_from_disk")};
  figures.disk_seconds = 1e-3 * static_cast<double>(sum_of_counts(counts, "disk_wait_ms"));
  const DiskReads before = std::exchange(disk_reads_, now);
  if (now.rows > before.rows)
    figures.rows_from_disk =
        static_cast<double>(now.from_disk - before.from_disk) / static_cast<double>(now.rows - before.rows);
}

void Run::report_disk_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts) {
  const int64_t bytes = sum_of_counts(counts, "bytes_on_disk");
  // logs only when the bytes have doubled, because displays are frequent
  if (bytes == 0 || bytes < 2 * disk_row_bytes_) return;
  if (disk_row_bytes_ == 0) {
    std::string folders;
    for (const std::string& folder : disk_folders(runtime_, *model_))
      folders += cat(folders.empty() ? "" : " and ", "'", folder, "'");
    report_->event(cat("Memory is full: the least used rows are evicted to files in ", folders,
                       ", and read back when a batch has their keys."));
  }
  report_->event(cat(sum_of_counts(counts, "rows_on_disk"), " rows on disk (",
                     formatted("%.1f GiB", static_cast<double>(bytes) / (1 << 30)), ")"));
  disk_row_bytes_ = bytes;
}

std::optional<double> Run::share_of_reads(const std::map<std::string, std::map<std::string, int64_t>>& counts) {
  Reads now;
  for (const auto& [name, of_table] : counts)
    if (const auto found = of_table.find("reads"); found != of_table.end()) {
      now.all += found->second;
      now.from_gpu += of_table.at("reads_from_gpu");
    }
  const Reads before = std::exchange(reads_, now);
  if (now.all == before.all) return std::nullopt;
  return static_cast<double>(now.from_gpu - before.from_gpu) / static_cast<double>(now.all - before.all);
}

void Run::report_host_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts) {
  int64_t rows = 0, bytes = 0;
  for (const auto& [name, of_table] : counts)
    if (const auto found = of_table.find("rows_in_host_memory"); found != of_table.end()) {
      rows += found->second;
      bytes += of_table.at("bytes_in_host_memory");
    }
  if (bytes <= host_row_bytes_) return;  // rows are also evicted and fetched again, so the number may shrink
  const std::string gib = formatted("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  if (host_row_bytes_ == 0)
    report_->event(
        cat(runtime_.device().is_cuda() ? "GPU memory for rows is full" : "The rows exceed \"gpu\" of \"table_memory\"",
            ": new rows are placed in host memory, which is slower."));
  report_->event(cat(rows, " rows in host memory (", gib, ")"));
  host_row_bytes_ = bytes;
}

}  // namespace hctr
