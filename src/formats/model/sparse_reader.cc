#include "formats/model/sparse_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/thread_pool.h"
#include "hctr/formats.h"

namespace hctr {
namespace {

constexpr int64_t kFileBlockBytes = int64_t{8} << 20;

int64_t rows_per_block(const SparseLayout& layout) {
  return std::max<int64_t>(kFileBlockBytes / layout.row_bytes(), 1);
}

/// How to read: with which threads, and whether vectors are needed.
struct Reading {
  ThreadPool* threads = nullptr;
  bool with_vectors = true;

  /// Calls body(begin, end) for parts of [0, count), on all threads.
  template <class Body>
  void in_parts(int64_t count, const Body& body) const {
    if (!threads) return body(0, count);
    threads->parallel_for(count, (count + threads->threads() - 1) / threads->threads(), body);
  }
};

/// Several threads may read one file.
void read_exactly(std::FILE* file, void* to, int64_t bytes, int64_t at, const fs::path& path) {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t count = ::pread(::fileno(file), static_cast<std::byte*>(to) + done, static_cast<size_t>(bytes - done),
                                  static_cast<off_t>(at + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw Error(Kind::io, cat("cannot read ", kSparseModelFile, " '", path.string(),
                                "': ", count < 0 ? std::strerror(errno) : "the file was truncated while being read"));
    done += count;
  }
}

/// Loads an unsigned integer of 4 or 8 bytes.
uint64_t number_at(const std::byte* at, int bytes) {
  uint64_t number = 0;
  std::memcpy(&number, at, static_cast<size_t>(bytes));
  return number;
}

/// Calls sink(rows) for all rows of the file, in blocks.
template <class Take>
void read_blocks(const fs::path& path, const SparseLayout& layout, int64_t rows, const Reading& reading, Take&& sink) {
  const File file = open_to_read(path, kSparseModelFile);
  const int64_t row_bytes = layout.row_bytes(), most = rows_per_block(layout);
  std::vector<std::byte> block;
  SparseRows out;
  out.of = rows;
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t n = std::min(most, rows - first);
    block.resize(static_cast<size_t>(n * row_bytes));
    out.keys.resize(static_cast<size_t>(n));
    if (layout.slot_bytes > 0) out.slots.resize(static_cast<size_t>(n));
    if (reading.with_vectors) out.vectors.resize(static_cast<size_t>(n * layout.dim));
    reading.in_parts(n, [&](int64_t begin, int64_t end) {
      read_exactly(file.get(), block.data() + begin * row_bytes, (end - begin) * row_bytes, (first + begin) * row_bytes,
                   path);
      for (int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        const std::byte* const row = block.data() + i * row_bytes;
        out.keys[at] = static_cast<int64_t>(number_at(row, layout.key_bytes));
        if (layout.slot_bytes > 0) out.slots[at] = number_at(row + layout.key_bytes, layout.slot_bytes);
        if (reading.with_vectors)
          std::memcpy(out.vectors.data() + i * layout.dim, row + layout.key_bytes + layout.slot_bytes,
                      static_cast<size_t>(layout.dim) * sizeof(float));
      }
    });
    sink(out);
  }
}

int64_t file_bytes(const fs::path& path) {
  open_to_read(path, kSparseModelFile);  // throws a descriptive error if the file cannot be opened
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) throw Error(Kind::io, cat("cannot read ", kSparseModelFile, " '", path.string(), "': ", error.message()));
  return static_cast<int64_t>(bytes);
}

/// Reads a folder of HugeCTR 3.1: one file each for keys, slot ids and vectors.
int64_t read_folder(const fs::path& folder, const SparseFileShape& shape, const Reading& reading,
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
      throw Error(Kind::data, cat("'", part.path.string(), "' has ", bytes, " bytes, but the ", rows, " keys need ",
                                  rows * part.row_bytes));
    files.push_back(open_to_read(part.path, kSparseModelFile));
  }
  SparseRows out;
  out.of = rows;
  const int64_t most = rows_per_block({8, with_slot ? 8 : 0, dim});
  for (int64_t first = 0; first < rows; first += most) {
    const int64_t n = std::min(most, rows - first);
    out.keys.resize(static_cast<size_t>(n));
    if (with_slot) out.slots.resize(static_cast<size_t>(n));
    if (reading.with_vectors) out.vectors.resize(static_cast<size_t>(n * dim));
    std::byte* const to[] = {reinterpret_cast<std::byte*>(out.keys.data()),
                             reinterpret_cast<std::byte*>(out.vectors.data()),
                             reinterpret_cast<std::byte*>(out.slots.data())};
    reading.in_parts(n, [&](int64_t begin, int64_t end) {
      for (size_t p = 0; p < parts.size(); ++p)
        if (p != 1 || reading.with_vectors)
          read_exactly(files[p].get(), to[p] + begin * parts[p].row_bytes, (end - begin) * parts[p].row_bytes,
                       (first + begin) * parts[p].row_bytes, parts[p].path);
    });
    sink(out);
  }
  return rows;
}

/// Whether at least a quarter of a file's first rows, read with this layout, have a property. `count`: returns how many
/// of the given rows have the property.
bool in_a_quarter(const fs::path& path, const SparseLayout& layout, int64_t bytes,
                  const std::function<int64_t(const SparseRows&)>& count) {
  const int64_t rows = std::min(bytes / layout.row_bytes(), rows_per_block(layout));
  int64_t found = 0;
  read_blocks(path, layout, rows, {}, [&](const SparseRows& some) { found += count(some); });
  return found * 4 >= rows;
}

/// Guesses whether a file has keys of 4 bytes if its size fits keys of 4 and of 8 bytes. True if, in the first rows,
/// many 8-byte keys would be negative and only few vector elements would be implausible with 4-byte keys. Background:
/// if 4-byte keys are read as 8 bytes, vector elements become part of the keys. If 8-byte keys are read as 4 bytes,
/// halves of keys become vector elements. Negative keys alone prove nothing, because valid keys may be negative.
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

/// Whether the file has slot ids although its size also fits rows without slot ids. The file has slot ids if its size
/// fits, and the slot ids of all rows would be valid, which cannot be coincidence. (The oldest layout has 4-byte keys
/// and 4-byte slot ids. Its rows are as long as rows with 8-byte keys, so it cannot be detected.)
bool holds_slot_ids(int64_t bytes, const SparseLayout& without,
                    const std::function<bool(const SparseLayout&)>& slot_ids_fit) {
  const auto others = known_layouts(true, without.dim, without.key_bytes);
  return std::any_of(others.begin(), others.end(), [&](const SparseLayout& other) {
    return other.slot_bytes == 8 && bytes % other.row_bytes() == 0 && bytes > other.row_bytes() && slot_ids_fit(other);
  });
}

int64_t read_file(const fs::path& path, const SparseFileShape& shape, const Reading& reading,
                  const std::function<void(const SparseRows&)>& sink, const Log& log) {
  const int64_t bytes = file_bytes(path);
  if (bytes == 0) {  // an empty file: a table without rows
    log.info("note: ", kSparseModelFile, " '", path.string(), "' has no rows");
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
    read_blocks(path, candidate, short_ids ? all : std::min(all, rows_per_block(candidate)), {reading.threads, false},
                [&](const SparseRows& rows) {
                  for (const uint64_t slot : rows.slots) {
                    fit = fit && slot < slots;
                    other_than_0 = other_than_0 || slot > 0;
                  }
                });
    return fit && other_than_0;
  });
  if (both)
    log.info("note: the ", bytes, " bytes of ", kSparseModelFile, " '", path.string(),
             "' fit keys of 4 and of 8 bytes: read as ", layout.key_bytes, ", ",
             shape.key_bytes == 0 ? "the more plausible width for these keys; set \"input_key_type\" for the other "
                                    "width"
                                  : "as \"input_key_type\" says");
  const int64_t rows = bytes / layout.row_bytes();
  read_blocks(path, layout, rows, reading, sink);
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

SparseLayout detect_layout(const fs::path& path, int64_t bytes, const std::vector<SparseLayout>& known,
                           const std::function<bool(const SparseLayout&)>& slot_ids_fit) {
  if (bytes == 0) throw Error(Kind::data, cat(kSparseModelFile, " '", path.string(), "' is empty"));
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
    throw Error(Kind::data, cat(kSparseModelFile, " '", path.string(), "': with every layout that fits its ", bytes,
                                " bytes, some slot ids do not exist in the config", fits_others ? "; " + hint : ""));
  if (any || fits_others)
    throw Error(Kind::data, cat(kSparseModelFile, " '", path.string(), "' of ", bytes,
                                " bytes does not consist of rows "
                                "with",
                                with_slot ? "" : "out", " a slot id (", sizes, " bytes each); ", hint));
  throw Error(Kind::data, cat(kSparseModelFile, " '", path.string(), "' has ", bytes,
                              " bytes, which is not a multiple of a row of ", known[0].dim, " elements (", sizes,
                              " bytes): the file is damaged or belongs to a model with another embedding_vec_size"));
}

int64_t read_sparse(const fs::path& path, const SparseFileShape& shape,
                    const std::function<void(const SparseRows&)>& sink, const Log& log, ThreadPool* threads) {
  const Reading reading{threads, shape.with_vectors};
  return fs::is_directory(path) ? read_folder(path, shape, reading, sink) : read_file(path, shape, reading, sink, log);
}

}  // namespace hctr
