// What a run says of rows in host memory.
#include <utility>

#include "base/progress.h"
#include "train/run.h"

namespace hctr {

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
  if (bytes == 0 || bytes == host_row_bytes_) return;
  const std::string gib = formatted("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  if (host_row_bytes_ == 0)
    report_->event(cat(runtime_.device().is_cuda() ? "The GPU has no more memory for rows"
                                                   : "The rows exceed \"gpu\" of \"table_memory\"",
                       ": new rows go to memory of the host, where steps read them more slowly."));
  report_->event(cat(rows, " rows in host memory (", gib, ")"));
  host_row_bytes_ = bytes;
}

}  // namespace hctr
