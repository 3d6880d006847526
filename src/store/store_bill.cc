#include "store/store_bill.h"

#include <algorithm>
#include <cstdio>
#include <span>

#include "core/base/expect.h"
#include "core/base/free_memory.h"
#include "core/device/device.h"
#include "store/cache_plan.h"
#include "store/concurrent_rows.h"
#include "store/level_sections.h"
#include "store/row_file.h"
#include "store/shared_row_table.h"
#include "store/table_sources.h"

namespace hctr {
namespace {

std::string mib(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::string number_or_unknown(int64_t number) { return number < 0 ? "not known" : std::to_string(number); }

}  // namespace

int64_t StoreBill::in_memory() const {
  int64_t sum = 0;
  for (const Table& table : tables) sum += table.in_memory();
  return sum;
}

int64_t StoreBill::on_disk() const {
  int64_t sum = 0;
  for (const Table& table : tables) sum += table.file;
  return sum;
}

int64_t StoreBill::on_gpu() const {
  int64_t sum = 0;
  for (const Table& table : tables) sum += std::max<int64_t>(0, table.gpu);
  return sum;
}

std::string StoreBill::text() const {
  using Row = std::vector<std::string>;
  std::vector<Row> rows = {{"model", "table", "rows", "dim", "memory", "index of files", "files"}};
  if (has_cache) rows[0].push_back("GPU cache");
  int64_t memory = 0, index = 0;
  for (const Table& one : tables) {
    const bool known = one.rows >= 0;
    const auto bytes = [&](int64_t of) { return known ? mib(of) : "not known"; };
    rows.push_back({cat(one.model, "/", one.version), one.table, number_or_unknown(one.rows), std::to_string(one.dim),
                    bytes(one.memory), bytes(one.index), bytes(one.file)});
    if (has_cache) rows.back().push_back(one.gpu < 0 ? "not known" : mib(one.gpu));
    memory += one.memory, index += one.index;
  }
  rows.push_back({"all", "", "", "", mib(memory), mib(index), mib(on_disk())});
  if (has_cache) rows.back().push_back(mib(on_gpu()));
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - row[c].size(), ' ');
      line += c < 2 ? cat(row[c], pad, "  ") : cat(pad, row[c], "  ");
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (!shared.empty()) text += cat("memory is shared: counted once for all processes that use '", shared, "'\n");
  text += cat("in memory ", mib(in_memory()), " of ", mib(free_memory), " that are free\n");
  if (!has_cache) return text;
  return text + (free_gpu_memory < 0
                     ? std::string("this machine has no GPU: the levels answer without the GPU cache\n")
                     : cat("in the GPU cache ", mib(on_gpu()), " of ", mib(free_gpu_memory), " that are free\n"));
}

Json StoreBill::json() const {
  Json all, list(Json::Array{});
  for (const Table& one : tables) {
    Json table;
    table.set("model", one.model);
    table.set("version", one.version);
    table.set("table", one.table);
    table.set("dim", one.dim);
    table.set("rows", one.rows);
    table.set("memory_bytes", one.memory);
    table.set("index_bytes", one.index);
    table.set("file_bytes", one.file);
    if (has_cache) table.set("gpu_cache_bytes", one.gpu);
    list.add(std::move(table));
  }
  all.set("tables", std::move(list));
  if (!shared.empty()) all.set("shared_memory", shared);
  all.set("memory_bytes", in_memory());
  all.set("file_bytes", on_disk());
  all.set("free_memory_bytes", free_memory);
  if (has_cache) {
    all.set("gpu_cache_bytes", on_gpu());
    all.set("free_gpu_memory_bytes", free_gpu_memory);
  }
  return all;
}

namespace {

/// Sets the bytes of the GPU cache for the tables [first, end) of one version. A pool's bytes are divided among its
/// tables in proportion to their rows.
void add_cache(const StoreCacheOptions& options, int64_t automatic, size_t first, std::vector<StoreBill::Table>& all) {
  const std::span<StoreBill::Table> tables = std::span(all).subspan(first);
  const bool sized = options.bytes > 0 || options.most_rows > 0 || options.share > 0;
  if ((!sized && automatic < 0) || std::ranges::any_of(tables, [](const auto& one) { return one.rows < 0; })) {
    for (StoreBill::Table& one : tables) one.gpu = -1;
    return;
  }
  std::vector<CachePlan::Table> planned;
  for (const StoreBill::Table& one : tables) planned.push_back({one.dim, one.rows});
  const CachePlan plan = plan_cache(planned, options, automatic);
  std::vector<int64_t> bytes = plan.bytes(kRowsOfCacheChange), rows(bytes.size());
  const auto pool_of = [&](size_t t) { return static_cast<size_t>(plan.pool_of_table[t]); };
  for (size_t t = 0; t < tables.size(); ++t) rows[pool_of(t)] += std::max<int64_t>(1, tables[t].rows);
  for (size_t t = 0; t < tables.size(); ++t) {
    const int64_t own = std::max<int64_t>(1, tables[t].rows);
    int64_t &left = bytes[pool_of(t)], &rows_left = rows[pool_of(t)];
    tables[t].gpu =
        static_cast<int64_t>(static_cast<double>(left) * static_cast<double>(own) / static_cast<double>(rows_left));
    if (own == rows_left) tables[t].gpu = left;
    left -= tables[t].gpu, rows_left -= own;
  }
}

}  // namespace

StoreBill store_bill(const StoreConfig& config, const std::vector<StoreModel>& models) {
  StoreBill bill{.tables = {},
                 .shared = config.shared_memory,
                 .free_memory = free_host_memory(),
                 .has_cache = config.gpu_cache.has_value()};
  const Device gpu{DeviceKind::cuda, 0};
  const bool has_gpu = bill.has_cache && find_gpus().count > 0;
  if (has_gpu) bill.free_gpu_memory = free_memory(gpu);
  for (const StoreModel& model : models) {
    const size_t first = bill.tables.size();
    for (const StoreTableSource& from : model.tables) {
      StoreBill::Table table{.model = model.name, .version = model.version, .table = from.name, .dim = from.dim};
      table.rows = from.rows ? -1 : count_rows(from);
      const int64_t rows = std::max<int64_t>(table.rows, 0);
      if (config.memory && table.rows >= 0)
        table.memory = !bill.shared.empty()
                           ? SharedRowTable::expected_bytes(from.dim, rows)
                           : ConcurrentRows::expected_bytes(
                                 from.dim, config.most_rows > 0 ? std::min(config.most_rows, rows) : rows);
      if (!config.folder.empty() && table.rows >= 0) {
        table.index = ConcurrentRows::expected_bytes(2, rows);
        table.file = RowFile::expected_bytes(from.dim, rows);
      }
      bill.tables.push_back(std::move(table));
    }
    if (bill.has_cache)
      add_cache(options_of(*config.gpu_cache), has_gpu ? automatic_cache_bytes(gpu) : -1, first, bill.tables);
  }
  return bill;
}

}  // namespace hctr
