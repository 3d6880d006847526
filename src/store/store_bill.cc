#include "store/store_bill.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/expect.h"
#include "core/base/free_memory.h"
#include "store/concurrent_rows.h"
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

std::string StoreBill::text() const {
  using Row = std::array<std::string, 7>;
  std::vector<Row> rows = {{"model", "table", "rows", "dim", "memory", "index of files", "files"}};
  int64_t memory = 0, index = 0;
  for (const Table& one : tables) {
    const bool known = one.rows >= 0;
    const auto bytes = [&](int64_t of) { return known ? mib(of) : "not known"; };
    rows.push_back({cat(one.model, "/", one.version), one.table, number_or_unknown(one.rows), std::to_string(one.dim),
                    bytes(one.memory), bytes(one.index), bytes(one.file)});
    memory += one.memory, index += one.index;
  }
  rows.push_back({"all", "", "", "", mib(memory), mib(index), mib(on_disk())});
  std::array<size_t, 7> widths{};
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
  return text + cat("in memory ", mib(in_memory()), " of ", mib(free_memory), " that are free\n");
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
    list.add(std::move(table));
  }
  all.set("tables", std::move(list));
  if (!shared.empty()) all.set("shared_memory", shared);
  all.set("memory_bytes", in_memory());
  all.set("file_bytes", on_disk());
  all.set("free_memory_bytes", free_memory);
  return all;
}

StoreBill store_bill(const StoreConfig& config, const std::vector<StoreModel>& models) {
  StoreBill bill{.tables = {}, .shared = config.shared_memory, .free_memory = free_host_memory()};
  for (const StoreModel& model : models)
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
  return bill;
}

}  // namespace hctr
