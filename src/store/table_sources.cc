#include "store/table_sources.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>

#include "config/sections/pretrained_files.h"
#include "core/base/expect.h"
#include "core/base/file_checksum.h"
#include "core/base/not_finite.h"
#include "formats/model/sparse_reader.h"
#include "hctr/formats.h"
#include "store/random_rows.h"
#include "store/safetensors.h"

namespace hctr {
namespace {

constexpr const char *kWhatOfRows = "table of rows", *kRemovedOfDelta = "file of removed keys";

bool is_empty_file(const fs::path& path) { return fs::is_regular_file(path) && fs::file_size(path) == 0; }

void read_model_file(const fs::path& path, int64_t dim, bool by_slot, int key_bytes, const StoreRowSink& sink,
                     ThreadPool& threads) {
  if (is_empty_file(path)) return;  // the table has no rows
  std::vector<int32_t> slots;
  read_sparse(
      path, {by_slot, dim, std::numeric_limits<int32_t>::max(), key_bytes},
      [&](const SparseRows& rows) {
        slots.assign(rows.slots.begin(), rows.slots.end());
        sink(slots, rows.keys, rows.vectors);
      },
      Log::silent(), &threads);
}

/// Like find_not_finite(values), but on all threads.
int64_t find_not_finite(std::span<const float> values, ThreadPool& threads) {
  constexpr int64_t kValuesOfTask = int64_t{1} << 16;
  std::atomic<int64_t> first{std::ssize(values)};
  threads.parallel_for(std::ssize(values), kValuesOfTask, [&](int64_t begin, int64_t end) {
    const auto some = values.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const int64_t at = hctr::find_not_finite(some);
    for (int64_t best = first; at >= 0 && begin + at < best && !first.compare_exchange_weak(best, begin + at);) {
    }
  });
  return first == std::ssize(values) ? -1 : first.load();
}

}  // namespace

void read_table(const StoreTableSource& from, const StoreRowSink& sink, ThreadPool& threads) {
  const int given = !from.model_file.empty() + !from.file.empty() + (!from.keys.empty() || !from.vectors.empty()) +
                    (from.rows != nullptr) + (from.random.rows != 0) + from.in_level;
  if (given != 1 || from.keys.empty() != from.vectors.empty())
    throw Error(Kind::config, cat("table '", from.name,
                                  "' needs one source: a model file, a Parquet or safetensors "
                                  "file, or NumPy files of keys and of vectors"));
  if (from.random.rows != 0) {
    if (from.random.rows < 0 || from.by_slot)
      throw Error(Kind::config, cat("table '", from.name,
                                    "': random rows are a number of at least 1, and are identified by the key alone"));
    return make_random_rows(from, sink, threads);
  }
  const StoreRowSink checked = [&](std::span<const int32_t> slots, std::span<const int64_t> keys,
                                   std::span<const float> rows) {
    HCTR_EXPECT(rows.size() == keys.size() * static_cast<size_t>(from.dim),
                "the size of the rows does not match "
                "the table's dim");
    if (const int64_t at = find_not_finite(rows, threads); at >= 0)
      throw Error(Kind::data, cat("table '", from.name, "': number ", at % from.dim, " of the row of key ",
                                  keys[static_cast<size_t>(at / from.dim)], " is ", rows[static_cast<size_t>(at)]));
    sink(slots, keys, rows);
  };
  const auto without_slots = [&](std::span<const int64_t> keys, std::span<const float> rows) {
    checked({}, keys, rows);
  };
  if (from.rows) return from.rows(checked);
  if (!from.model_file.empty()) return read_model_file(from.model_file, from.dim, from.by_slot, 0, checked, threads);
  if (from.file.extension() == ".safetensors") return read_safetensors(from.file, from.dim, without_slots);
  Pretrained files;
  files.table = from.name;
  files.file = from.file;
  files.keys = from.keys;
  files.vectors = from.vectors;
  read_pretrained(files, from.dim, without_slots);
}

std::map<int32_t, int64_t> rows_by_slot(const StoreTableSource& from, ThreadPool& threads) {
  std::map<int32_t, int64_t> rows;
  if (!from.by_slot || from.model_file.empty() || is_empty_file(from.model_file)) return rows;
  read_sparse(
      from.model_file, {true, from.dim, std::numeric_limits<int32_t>::max(), 0, false},
      [&](const SparseRows& block) {
        for (size_t begin = 0, end = 0; begin < block.slots.size(); begin = end) {
          while (end < block.slots.size() && block.slots[end] == block.slots[begin]) ++end;
          rows[static_cast<int32_t>(block.slots[begin])] += static_cast<int64_t>(end - begin);
        }
      },
      Log::silent(), &threads);
  return rows;
}

int64_t count_rows(const StoreTableSource& from) {
  int64_t rows = 0;
  if (from.random.rows > 0) return from.random.rows;
  if (from.model_file.empty()) {
    ThreadPool threads(usable_cores());
    const auto add = [&](std::span<const int32_t>, std::span<const int64_t> keys, std::span<const float>) {
      rows += static_cast<int64_t>(keys.size());
    };
    read_table(from, add, threads);
    return rows;
  }
  if (is_empty_file(from.model_file)) return 0;
  struct Known {};
  try {  // stops after the first block, which has the total number
    read_sparse(from.model_file, {from.by_slot, from.dim, std::numeric_limits<int32_t>::max(), 0},
                [&](const SparseRows& block) {
                  rows = block.of;
                  throw Known{};
                });
  } catch (const Known&) {
  }
  return rows;
}

std::string content_of(const StoreTableSource& from) {
  if (!from.content.empty()) return from.content;
  if (from.random.rows > 0) return cat("random ", from.random.rows, " ", from.random.seed);
  std::string content;
  const auto add = [&](const fs::path& file) {
    const FileChecksum sum = checksum_of(file, kWhatOfRows);
    content += cat(crc_text(sum.crc), "-", sum.bytes, " ");
  };
  for (const fs::path& path : {from.model_file, from.file, from.keys, from.vectors}) {
    if (path.empty()) continue;
    if (!fs::is_directory(path)) {
      add(path);
      continue;
    }
    for (const char* name : {formats::kFolderKeys, formats::kFolderSlots, formats::kFolderVectors})
      if (fs::exists(path / name)) add(path / name);
  }
  return content;
}

ChangesOfTable changes_of(const ModelManifest& delta, size_t table) {
  ChangesOfTable changes;
  const auto number = static_cast<int64_t>(table);
  const SavedTable& of = delta.tables[table];
  ThreadPool alone(1);
  if (delta.delta->tables[table].changed > 0)
    read_model_file(
        formats::sparse_model_name(delta.prefix, number, delta.iteration), of.dim, of.by_slot, delta.delta->key_bytes,
        [&](std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows) {
          for (size_t i = 0; i < keys.size(); ++i) {
            ChangedRows& to = changes[slots.empty() ? 0 : slots[i]];
            to.keys.push_back(keys[i]);
            const float* const row = rows.data() + static_cast<int64_t>(i) * of.dim;
            to.rows.insert(to.rows.end(), row, row + of.dim);
          }
        },
        alone);
  const fs::path removed = formats::removed_keys_name(delta.prefix, number, delta.iteration);
  const File file = open_to_read(removed, kRemovedOfDelta);
  struct {
    int64_t slot, key;
  } one{};
  while (std::fread(&one, sizeof one, 1, file.get()) == 1)
    changes[static_cast<int32_t>(one.slot)].removed.push_back(one.key);
  return changes;
}

std::map<int64_t, fs::path> deltas_at(const std::string& prefix) {
  const fs::path start = fs::path(cat(prefix, "_delta_"));
  const std::string name = start.filename().string();
  std::map<int64_t, fs::path> deltas;
  std::error_code error;
  const fs::path folder = start.has_parent_path() ? start.parent_path() : fs::path(".");
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string own = at->path().filename().string();
    if (!own.starts_with(name) || !at->is_directory()) continue;
    int64_t iteration = 0;
    const char *const first = own.data() + name.size(), *const last = own.data() + own.size();
    const auto [stop, problem] = std::from_chars(first, last, iteration);
    if (problem == std::errc() && stop == last && first != last) deltas[iteration] = at->path();
  }
  return deltas;
}

}  // namespace hctr
