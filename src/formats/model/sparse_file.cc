#include "formats/model/sparse_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/not_finite.h"
#include "formats/model/access_stats_file.h"
#include "formats/model/opt_states_file.h"
#include "hctr/formats.h"

namespace hctr {
namespace {

constexpr int64_t kFileBlockBytes = int64_t{8} << 20;
constexpr const char* kModelFile = "sparse model file";

int64_t rows_per_block(const SparseLayout& layout) {
  return std::max<int64_t>(kFileBlockBytes / layout.row_bytes(), 1);
}

void read_exactly(std::FILE* file, void* to, size_t bytes, const fs::path& path) {
  if (std::fread(to, 1, bytes, file) == bytes) return;
  throw Error(Kind::io, cat("cannot read ", kModelFile, " '", path.string(), "': ",
                            std::ferror(file) ? std::strerror(errno) : "the file was truncated while being read"));
}

/// Loads an unsigned integer of 4 or 8 bytes.
uint64_t number_at(const std::byte* at, int bytes) {
  uint64_t number = 0;
  std::memcpy(&number, at, static_cast<size_t>(bytes));
  return number;
}

/// Calls sink(rows) for all rows of the file, in blocks.
template <class Take>
void read_blocks(const fs::path& path, const SparseLayout& layout, int64_t rows, Take&& sink) {
  const File file = open_to_read(path, kModelFile);
  std::vector<std::byte> block;
  for (int64_t first = 0; first < rows; first += rows_per_block(layout)) {
    const int64_t n = std::min(rows_per_block(layout), rows - first);
    block.resize(static_cast<size_t>(n * layout.row_bytes()));
    read_exactly(file.get(), block.data(), block.size(), path);
    SparseRows out;
    out.of = rows;
    out.vectors.resize(static_cast<size_t>(n * layout.dim));
    for (int64_t i = 0; i < n; ++i) {
      const std::byte* row = block.data() + i * layout.row_bytes();
      out.keys.push_back(static_cast<int64_t>(number_at(row, layout.key_bytes)));
      if (layout.slot_bytes > 0) out.slots.push_back(number_at(row + layout.key_bytes, layout.slot_bytes));
      std::memcpy(out.vectors.data() + i * layout.dim, row + layout.key_bytes + layout.slot_bytes,
                  static_cast<size_t>(layout.dim) * sizeof(float));
    }
    sink(out);
  }
}

int64_t file_bytes(const fs::path& path) {
  open_to_read(path, kModelFile);  // throws a descriptive error if the file cannot be opened
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) throw Error(Kind::io, cat("cannot read ", kModelFile, " '", path.string(), "': ", error.message()));
  return static_cast<int64_t>(bytes);
}

template <class Table>
void import(Table& table, const SparseOrigin& from, const SparseRows& rows, OptStatesReader* states) {
  std::vector<int32_t> slots;
  for (const uint64_t slot : rows.slots)
    slots.push_back(slot < static_cast<uint64_t>(table.spec().slots) ? static_cast<int32_t>(slot)
                                                                     : std::numeric_limits<int32_t>::max());
  RowBlock block{rows.keys, slots, rows.vectors, {}, {}};
  std::vector<int32_t> last_steps;
  if (states) {
    states->add_to(block, rows.slots);
    // lazy updates compute the missed steps from last_steps; here none were missed
    last_steps.assign(rows.keys.size(), static_cast<int32_t>(from.updates));
    block.last_steps = last_steps;
  }
  in_context([&] { return cat("loading ", kModelFile, " '", from.path.string(), "'"); },
             [&] { table.import_rows(block); });
}

/// Reads a folder of HugeCTR 3.1: one file each for keys, slot ids and vectors.
int64_t read_folder(const fs::path& folder, const SparseFileShape& shape,
                    const std::function<void(const SparseRows&)>& sink) {
  const int64_t dim = shape.dim;
  const bool with_slot = shape.with_slot;
  struct Part {
    fs::path path;
    int64_t row_bytes;
  };
  std::vector<Part> parts = {{folder / formats::kFolderKeys, 8}, {folder / formats::kFolderVectors, dim * 4}};
  if (with_slot) parts.push_back({folder / formats::kFolderSlots, 8});
  const int64_t rows = file_bytes(parts[0].path) / 8;
  std::vector<File> files;
  for (const Part& part : parts) {
    if (const int64_t bytes = file_bytes(part.path); bytes != rows * part.row_bytes)
      throw Error(Kind::data, cat("'", part.path.string(), "' has ", bytes, " bytes; ", rows, " keys make ",
                                  rows * part.row_bytes));
    files.push_back(open_to_read(part.path, kModelFile));
  }
  const int64_t block = rows_per_block({8, with_slot ? 8 : 0, dim});
  for (int64_t first = 0; first < rows; first += block) {
    const auto n = static_cast<size_t>(std::min(block, rows - first));
    SparseRows out{std::vector<int64_t>(n), std::vector<uint64_t>(with_slot ? n : 0),
                   std::vector<float>(n * static_cast<size_t>(dim)), rows};
    read_exactly(files[0].get(), out.keys.data(), n * 8, parts[0].path);
    read_exactly(files[1].get(), out.vectors.data(), out.vectors.size() * sizeof(float), parts[1].path);
    if (with_slot) read_exactly(files[2].get(), out.slots.data(), n * 8, parts[2].path);
    sink(out);
  }
  return rows;
}

bool fits_u32(int64_t key) { return key >= 0 && key <= std::numeric_limits<uint32_t>::max(); }

/// Whether at least a quarter of the first rows have a property in this layout. `count`: returns the number of rows
/// with the property.
bool in_a_quarter(const fs::path& path, const SparseLayout& layout, int64_t bytes,
                  const std::function<int64_t(const SparseRows&)>& count) {
  const int64_t rows = std::min(bytes / layout.row_bytes(), rows_per_block(layout));
  int64_t found = 0;
  read_blocks(path, layout, rows, [&](const SparseRows& some) { found += count(some); });
  return found * 4 >= rows;
}

/// Guesses from the first rows whether keys have 4 bytes, if the file size fits 4 and 8. In a wrong 8-byte layout,
/// vector elements become part of the keys, and many keys are negative. Valid keys may be negative, too. In a wrong
/// 4-byte layout, halves of keys become vector elements, and many have implausible magnitudes.
bool seems_narrow(const fs::path& path, const SparseLayout& wide, const SparseLayout& narrow, int64_t bytes) {
  const auto negative = [](const SparseRows& some) {
    return std::count_if(some.keys.begin(), some.keys.end(), [](int64_t key) { return key < 0; });
  };
  const auto odd = [](const SparseRows& some) {
    return std::count_if(some.vectors.begin(), some.vectors.end(),
                         [](float x) { return !(std::fabs(x) < 1e8f) || (x != 0 && std::fabs(x) < 1e-30f); });
  };
  return in_a_quarter(path, wide, bytes, negative) && !in_a_quarter(path, narrow, bytes, odd);
}

int64_t read_file(const fs::path& path, const SparseFileShape& shape,
                  const std::function<void(const SparseRows&)>& sink, const Log& log) {
  const int64_t bytes = file_bytes(path);
  if (bytes == 0) {  // an empty file is a table without rows
    log.info("note: ", kModelFile, " '", path.string(), "' has no rows");
    return 0;
  }
  const auto slots = static_cast<uint64_t>(shape.slots);
  std::vector<SparseLayout> known = known_layouts(shape.with_slot, shape.dim, shape.key_bytes);
  // whether both key widths fit; in files with slot ids, the slot ids determine the layout
  const bool both =
      !shape.with_slot && bytes > 0 && bytes % known[0].row_bytes() == 0 && bytes % known[1].row_bytes() == 0;
  if (both && shape.key_bytes == 0 && seems_narrow(path, known[0], known[1], bytes)) std::swap(known[0], known[1]);
  const SparseLayout layout = detect_layout(path, bytes, known, [&](const SparseLayout& candidate) {
    // If all 4-byte slot ids are 0, they may be the upper halves of 8-byte keys. So the whole file is searched for a
    // nonzero slot id.
    const bool short_ids = candidate.slot_bytes == 4 && slots > 1;
    const int64_t all = bytes / candidate.row_bytes();
    bool fit = true, other_than_0 = !short_ids;
    read_blocks(path, candidate, short_ids ? all : std::min(all, rows_per_block(candidate)),
                [&](const SparseRows& rows) {
                  for (const uint64_t slot : rows.slots) {
                    fit = fit && slot < slots;
                    other_than_0 = other_than_0 || slot > 0;
                  }
                });
    return fit && other_than_0;
  });
  if (both)
    log.info("note: the ", bytes, " bytes of ", kModelFile, " '", path.string(),
             "' fit keys of 4 and of 8 bytes: read as ", layout.key_bytes, ", ",
             shape.key_bytes == 0 ? "the more plausible width for these keys; set \"input_key_type\" for the other "
                                    "width"
                                  : "as \"input_key_type\" says");
  const int64_t rows = bytes / layout.row_bytes();
  read_blocks(path, layout, rows, sink);
  return rows;
}

}  // namespace

std::vector<SparseLayout> known_layouts(bool with_slot, int64_t dim, int key_bytes) {
  std::vector<SparseLayout> known = {{8, with_slot ? 8 : 0, dim}, {4, with_slot ? 8 : 0, dim}};
  if (with_slot) known.push_back({4, 4, dim});
  std::stable_partition(known.begin(), known.end(),
                        [&](const SparseLayout& layout) { return layout.key_bytes == key_bytes; });
  return known;
}

/// Whether the file has slot ids although its size fits rows without slot ids. The size may fit by accident, but slot
/// ids that are valid in all rows are no accident. (The oldest layout has 4-byte keys and 4-byte slot ids. Its rows are
/// as long as rows with 8-byte keys, so it cannot be detected.)
bool holds_slot_ids(int64_t bytes, const SparseLayout& without,
                    const std::function<bool(const SparseLayout&)>& slot_ids_fit) {
  const auto others = known_layouts(true, without.dim, without.key_bytes);
  return std::any_of(others.begin(), others.end(), [&](const SparseLayout& other) {
    return other.slot_bytes == 8 && bytes % other.row_bytes() == 0 && bytes > other.row_bytes() && slot_ids_fit(other);
  });
}

SparseLayout detect_layout(const fs::path& path, int64_t bytes, const std::vector<SparseLayout>& known,
                           const std::function<bool(const SparseLayout&)>& slot_ids_fit) {
  if (bytes == 0) throw Error(Kind::data, cat(kModelFile, " '", path.string(), "' is empty"));
  std::string sizes;
  bool any = false;
  for (const SparseLayout& layout : known) {
    sizes += cat(sizes.empty() ? "" : ", ", layout.row_bytes());
    if (bytes % layout.row_bytes() != 0) continue;
    any = true;
    if (layout.slot_bytes > 0 ? slot_ids_fit(layout) : !holds_slot_ids(bytes, layout, slot_ids_fit)) return layout;
  }
  const bool with_slot = known[0].slot_bytes > 0;
  const std::string hint =
      cat("its rows seem to be identified by ",
          with_slot ? "keys alone: \"identity\": \"key\"" : "slot and key: \"identity\": \"slot_and_key\"");
  const auto others = known_layouts(!with_slot, known[0].dim, known[0].key_bytes);
  const bool fits_others = std::any_of(others.begin(), others.end(),
                                       [&](const SparseLayout& other) { return bytes % other.row_bytes() == 0; });
  if (any && with_slot)
    throw Error(Kind::data, cat(kModelFile, " '", path.string(), "': with every layout that fits its ", bytes,
                                " bytes, some slot ids do not exist in the config", fits_others ? "; " + hint : ""));
  if (any || fits_others)
    throw Error(Kind::data, cat(kModelFile, " '", path.string(), "' of ", bytes,
                                " bytes does not consist of rows "
                                "with",
                                with_slot ? "" : "out", " a slot id (", sizes, " bytes each); ", hint));
  throw Error(Kind::data, cat(kModelFile, " '", path.string(), "' has ", bytes,
                              " bytes, which is not a multiple of a row of ", known[0].dim, " elements (", sizes,
                              " bytes): the file is damaged or belongs to a model with another embedding_vec_size"));
}

template <class Table>
void save_sparse(FileSet& set, Table& table, const SparseTarget& to) {
  const fs::path stats_path = access_stats_path(to.path);
  std::optional<SparseWriter> rows;
  std::optional<OptStatesWriter> states;
  std::optional<AccessStatsWriter> stats;
  std::exception_ptr failed;
  const auto unless_failed = [&](const auto& body) {
    if (failed) return;
    try {
      body();
    } catch (...) {
      failed = std::current_exception();
    }
  };
  unless_failed([&] {
    rows.emplace(set, to.path, table.spec(), to.format, to.key_bytes);
    if (!to.states.empty()) states.emplace(set, to.states, table.spec(), to.rows);
    if (table.spec().policy.keeps_access_stats())
      stats.emplace(set.add(stats_path), table.spec().policy, table.counted_steps());
    else
      set.remove(stats_path);
  });
  // export_rows() is collective, so an error on this rank must not abort it.
  table.export_rows(!to.states.empty(), [&](const RowBlock& block) {
    unless_failed([&] {
      rows->add(block);
      if (states) states->add(block);
      if (stats) stats->add(block);
    });
  });
  unless_failed([&] {
    rows->finish();
    if (states) states->finish();
    if (stats) stats->finish();
  });
  if (failed) std::rethrow_exception(failed);
}

int64_t read_sparse(const fs::path& path, const SparseFileShape& shape,
                    const std::function<void(const SparseRows&)>& sink, const Log& log) {
  return fs::is_directory(path) ? read_folder(path, shape, sink) : read_file(path, shape, sink, log);
}

namespace {

/// `in_model`: number of rows in the model file.
template <class Table>
void load_access_stats(const fs::path& path, Table& table, int64_t in_model) {
  const int64_t rows = table.rows();
  const auto check = [&](const AccessStatsHead& head) {
    if (head.rows != in_model)
      throw Error(Kind::data, cat("'", path.string(), "' has access statistics of ", head.rows,
                                  " keys, but the model file next to it has ", in_model,
                                  " rows: the statistics belong to another "
                                  "model"));
  };
  const auto import_block = [&](const AccessStatsHead& head, std::span<const formats::RowAccess> stats) {
    check(head);
    // A row without a recorded step gets the last step, as if its key had just been seen, so that it is not evicted
    // first.
    const auto unknown = static_cast<uint32_t>(std::max<int64_t>(head.steps - 1, 0));
    std::vector<int64_t> keys;
    std::vector<int32_t> slots;
    std::vector<uint32_t> last_seen, occurrences;
    for (const formats::RowAccess& row : stats) {
      keys.push_back(row.key);
      slots.push_back(row.slot);
      last_seen.push_back(head.last_seen ? row.last_seen : unknown);
      occurrences.push_back(
          static_cast<uint32_t>(std::min<uint64_t>(row.occurrences, std::numeric_limits<uint32_t>::max())));
    }
    table.import_rows({keys, slots, {}, {}, {}, last_seen, occurrences});
  };
  in_context([&] { return cat("loading the access statistics '", path.string(), "'"); },
             [&] {
               const AccessStatsHead head = read_access_stats(path, import_block);
               check(head);
               table.continue_access_stats(head.steps);
               if (const int64_t more = table.rows() - rows; more > 0)
                 throw Error(Kind::data,
                             cat("'", path.string(), "' has access statistics of ", more,
                                 " keys without a row: the statistics do not belong to the model file next to them"));
             });
}

struct Loaded {
  int64_t rows = 0;
  bool wide_keys = false;  ///< some key does not fit 4 bytes
};

template <class Table>
Loaded load_rows(Table& table, const SparseOrigin& from, const Log& log) {
  const fs::path& path = from.path;
  const TableSpec& spec = table.spec();
  const SparseFileShape shape{spec.identity_by_slot, spec.dim, spec.slots, from.key_bytes};
  std::optional<OptStatesReader> states;
  const auto open_states = [&](int64_t rows) {  // the number of rows is known only after the layout is detected
    if (!from.states.empty() && !states) states.emplace(from.states, spec, rows, path);
  };
  const auto twice = [&](int64_t rows, int64_t different) {
    return Error(Kind::data,
                 cat(kModelFile, " '", path.string(), "' has ", rows, " rows of ", different, " different keys"));
  };
  bool wide_keys = false;
  int64_t before = 0;  // number of rows before this part
  const auto load = [&](const SparseRows& part) {
    if (const int64_t at = find_not_finite(part.vectors); at >= 0)
      throw Error(Kind::data, cat(kModelFile, " '", path.string(), "': element ", at % spec.dim, " of row ",
                                  before + at / spec.dim, ", of key ", part.keys[static_cast<size_t>(at / spec.dim)],
                                  ", is ", part.vectors[static_cast<size_t>(at)]));
    if (before == 0) table.reserve_import(part.of);
    before += static_cast<int64_t>(part.keys.size());
    open_states(part.of);
    import(table, from, part, states ? &*states : nullptr);
    wide_keys = wide_keys || !std::all_of(part.keys.begin(), part.keys.end(), fits_u32);
  };
  if (spec.direct.empty()) {
    HCTR_EXPECT(table.rows() == 0, "loading a sparse model file needs an empty table, found ", table.rows(), " rows");
    const int64_t rows = read_sparse(path, shape, load, log);
    open_states(rows);
    if (table.rows() != rows) throw twice(rows, table.rows());
    return {rows, wide_keys};
  }
  const ops::DirectIndex index = spec.direct.index();
  std::vector<bool> loaded(static_cast<size_t>(spec.direct.rows() + 1));
  int64_t repeated = 0;
  const auto load_direct = [&](const SparseRows& part) {
    load(part);
    for (size_t i = 0; i < part.keys.size(); ++i) {
      const int64_t slot = part.slots.empty() ? 0
                                              : static_cast<int64_t>(part.slots[i]) *
                                                    // for column-sharded rows: index of the slot's first piece
                                                    spec.direct.pieces;
      const auto row = static_cast<size_t>(index.row(part.keys[i], static_cast<int32_t>(slot)));
      if (row == 0) continue;  // another rank owns the row
      repeated += loaded[row];
      loaded[row] = true;
    }
  };
  const int64_t rows = read_sparse(path, shape, load_direct, log);
  open_states(rows);
  if (repeated > 0) throw twice(rows, rows - repeated);
  return {rows, wide_keys};
}

}  // namespace

template <class Table>
bool load_sparse(Table& table, const SparseOrigin& from, const Log& log) {
  const Loaded loaded = load_rows(table, from, log);
  if (from.with_access_stats && table.spec().policy.keeps_access_stats())
    load_access_stats(access_stats_path(from.path), table, loaded.rows);
  return loaded.wide_keys;
}

bool has_access_stats(const fs::path& path) { return fs::exists(access_stats_path(path)); }

template void save_sparse(FileSet&, EmbeddingTable&, const SparseTarget&);
template void save_sparse(FileSet&, Embedding&, const SparseTarget&);
template bool load_sparse(EmbeddingTable&, const SparseOrigin&, const Log&);
template bool load_sparse(Embedding&, const SparseOrigin&, const Log&);

}  // namespace hctr
