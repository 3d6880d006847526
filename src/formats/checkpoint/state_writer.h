// Collects the state of a rank for a checkpoint. Training waits while state is copied to host memory, but not while
// files are written.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"
#include "core/base/thread_pool.h"
#include "core/device/buffer.h"
#include "core/device/stream.h"
#include "core/device/tensor.h"
#include "formats/checkpoint/state_index.h"

namespace hctr {

/// A piece of a checkpoint file in host memory.
struct HostBytes {
  std::unique_ptr<std::byte[]> data;
  size_t bytes = 0;
  int64_t offset = 0;  ///< offset of the first byte in the file
  std::span<const std::byte> span() const { return {data.get(), bytes}; }
};

/// Copies from a GPU to freshly allocated host memory. The GPU fills a page-locked staging buffer, and several threads
/// copy from that buffer to the destination. A direct copy is ten times slower, because a single thread takes the page
/// faults.
class StagedCopies {
 public:
  /// Allocates the staging buffer on first use. The thread pool must outlive this object.
  StagedCopies(Device, ThreadPool&);
  /// Fills `to`. copy(first, span) must queue a copy of span.size() bytes on the stream, starting at byte `first`.
  void fill(std::span<std::byte> to, StreamRef,
            const std::function<void(int64_t first, std::span<std::byte> to)>& copy);

 private:
  Device device_;
  std::optional<HostBuffer> memory_;  // two halves: the GPU fills one while threads read the other
  ThreadPool& threads_;
};

/// Rows that are not copied while training waits. Another thread reads these rows while training continues. They must
/// not change before they are read.
struct LaterRows {
  struct Part {
    int64_t offset = 0, row_bytes = 0;  ///< offset: file offset of the first deferred row; row_bytes: bytes per row
  };
  std::vector<Part> parts;
  int64_t rows = 0;
  /// Copies rows [first, first + count) of each parts[p] into to[p]. Each row is read once, in ascending order. The
  /// function keeps the rows' memory alive, so it may be called at any time. Errors: Error(io).
  std::function<void(int64_t first, int64_t count, std::span<std::byte* const> to)> read;
  /// Seconds that training has waited for these reads.
  std::function<double()> waited;
};

/// All deferred rows of a state.
struct LaterState {
  int64_t memory = 0;  ///< bytes still available for copies of deferred rows
  std::vector<LaterRows> rows;
  std::string refused;  ///< the reason if some rows could not be deferred, else empty
};

/// Memory for copies of a state; a null member: no such memory.
struct StateBuffers {
  StagedCopies* staged = nullptr;
  LaterState* later = nullptr;  ///< rows that are written later
};

/// Collects named state for a checkpoint. StateReader has member functions of the same names, so an object can list its
/// state in one template for saving and restoring.
class StateWriter {
 public:
  using Sink = std::function<void(HostBytes)>;
  /// Identifies the checkpoint: its iteration and, for an increment, the iteration of its base.
  struct Which {
    int64_t iteration = 0;
    std::optional<int64_t> base{};
  };
  /// Writes the state of `rank`, which is on the device of `stream`. Copies are passed to `sink` in file order, with
  /// gaps for rows deferred to `later`; `index` describes the file. All arguments must outlive this writer and the
  /// writers from in().
  StateWriter(int rank, StreamRef stream, StateIndex& index, const Sink& sink, const Which& which,
              const StateBuffers& buffers = {})
      : rank_(rank),
        stream_(stream),
        index_(&index),
        sink_(&sink),
        which_(which),
        staged_(buffers.staged),
        later_(buffers.later) {}

  /// A writer that prefixes all names with "<scope>/".
  StateWriter in(std::string_view scope) const;
  /// This rank. Rank 0 saves the state that all ranks have in common.
  int rank() const { return rank_; }
  const Which& which() const { return which_; }

  /// Saves a dense tensor. Synchronizes the stream.
  void tensor(std::string_view name, const Tensor&);
  /// Saves an array in device or host memory.
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const void* from);
  /// Queues a copy to `to` on the stream. `first`: offset of the first byte within the array.
  using Copy = std::function<void(StreamRef, int64_t first, std::span<std::byte> to)>;
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Copy& copy);
  /// The changed rows of an array since the base.
  struct Changes {
    int64_t base_rows = 0;  ///< the base stores rows [0, base_rows)
    std::string list;       ///< name of the array with the changed rows' ascending indices; empty: no changed rows
    int64_t count = 0;
    /// Copies the changed rows list[first], ..., list[first + rows - 1] to the host.
    std::function<void(int64_t first, int64_t rows, std::byte* to)> copy{};
  };
  /// Saves an array in an increment: its changed rows and the rows from base_rows on. `added` copies the rows from
  /// base_rows on.
  void changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Changes&,
               const Copy& added);
  void changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Changes&,
               const void* added);
  /// The list of deferred rows; null: all state must be copied now. If rows of an object do not change until they are
  /// read, the object may append them to this list instead of copying them.
  LaterState* later() const { return later_; }
  /// Adds an array to the file and copies only its first `rows` rows. Returns the file location of the remaining,
  /// deferred rows.
  LaterRows::Part part_of_array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                                const Copy& copy, int64_t rows);
  /// Adds an array of an increment to the file without copying rows. Returns the file location of its rows.
  LaterRows::Part place_of_changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                                   const Changes&);
  template <class T>
  void list(std::string_view name, const std::vector<T>& values) {
    array(name, name_of(kDTypeOf<T>), {static_cast<int64_t>(values.size())}, values.data());
  }
  void number(std::string_view name, int64_t value) { index_->values.set(scope_ + std::string(name), value); }

 private:
  /// Adds an array to the index. In the file, the array is placed after all earlier arrays. Returns its index entry.
  StateArray& add(StateArray);
  StateArray& add_changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                          const Changes&);
  /// Copies `bytes` bytes in pieces to the host and passes them to the sink. `offset`: file offset of the first byte.
  void copy_pieces(const Copy& copy, int64_t bytes, int64_t offset);

  int rank_;
  StreamRef stream_;
  StateIndex* index_;
  const Sink* sink_;
  Which which_;
  StagedCopies* staged_;
  LaterState* later_;
  std::string scope_;
};

/// Writes the file of one rank and computes its size and checksum.
class StateFileWriter {
 public:
  /// Errors of all members: Error(io).
  explicit StateFileWriter(const fs::path& path) : file_(path) {}
  /// Appends to the file.
  void write(std::span<const std::byte> bytes) { write_at(end_, bytes); }
  /// Appends to the file; several threads compute the checksum.
  void write(std::span<const std::byte> bytes, ThreadPool& threads) { write_at(end_, bytes, threads); }
  /// Writes to a range of the file that is not written yet.
  void write_at(int64_t offset, std::span<const std::byte>);
  void write_at(int64_t offset, std::span<const std::byte>, ThreadPool&);
  /// Reads deferred rows in blocks and writes them.
  void write(const LaterRows&);
  /// Flushes the file to disk and gives it its final name. Sets the checksum in the index.
  void commit(StateIndex&);

 private:
  struct Piece {
    int64_t bytes = 0;
    uint32_t crc = 0;
  };
  /// The written piece that ends at `offset`; a new piece if there is none.
  Piece& piece_before(int64_t offset);
  void put(int64_t offset, std::span<const std::byte>);

  AtomicFile file_;
  int64_t end_ = 0;                  // end of the written data
  int64_t position_ = 0;             // current position of the file
  std::map<int64_t, Piece> pieces_;  // pieces by offset
};

}  // namespace hctr
