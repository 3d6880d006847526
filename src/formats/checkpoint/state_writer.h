// Collects the state of a rank for a checkpoint: copies to the host during a stop, and files written later.
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

/// A piece of the state in host memory.
struct HostBytes {
  std::unique_ptr<std::byte[]> data;
  size_t bytes = 0;
  int64_t offset = 0;  ///< offset of its first byte in the file
  std::span<const std::byte> span() const { return {data.get(), bytes}; }
};

/// Copies from a GPU to host memory that was never used: through page-locked memory, from which threads spread the
/// data. A direct copy takes ten times as long, since one thread waits for each new page.
class StagedCopies {
 public:
  /// Outlived by its arguments. Takes its memory when a piece first needs it.
  StagedCopies(Device, ThreadPool&);
  /// copy(first, span) starts to copy the bytes from `first` on, after the work of the stream.
  void fill(std::span<std::byte> to, StreamRef,
            const std::function<void(int64_t first, std::span<std::byte> to)>& copy);

 private:
  Device device_;
  std::optional<HostBuffer> memory_;  // two halves: a thread fills one while another reads the other
  ThreadPool& threads_;
};

/// Rows of some arrays that do not change until they have been read, so that a thread can read them while training
/// continues.
struct LaterRows {
  struct Part {
    int64_t offset = 0, row_bytes = 0;  ///< offset in the file of the first of these rows; bytes of each row
  };
  std::vector<Part> parts;
  int64_t rows = 0;
  /// Sets to[p] to rows [first, first + count) of parts[p]. Called once for each row, in their order. The memory stays
  /// valid until this object is destroyed. Errors: Error(io).
  std::function<void(int64_t first, int64_t count, std::span<std::byte* const> to)> read;
  /// The seconds for which training has waited for reads.
  std::function<double()> waited;
};

/// The parts of a state that are read later.
struct LaterState {
  int64_t memory = 0;  ///< bytes that copies for that may still take
  std::vector<LaterRows> rows;
  std::string refused;  ///< why some rows are read now, although they could be read later; empty: none are
};

/// Receives named state for a checkpoint from its owners. StateReader has the same calls, so that an owner lists its
/// state once, in a template for both.
class StateWriter {
 public:
  using Sink = std::function<void(HostBytes)>;
  /// The checkpoint's identity: its iteration, and whether it is full or an increment on the full one of iteration
  /// `base`.
  struct Which {
    int64_t iteration = 0;
    std::optional<int64_t> base{};
  };
  /// The state of `rank`, on the device of `stream`. Copies go to `sink` in the order of the file that `index`
  /// describes, with gaps for rows left to `later`. All outlive the writer and those made by in(); `staged` and `later`
  /// may be null.
  StateWriter(int rank, StreamRef stream, StateIndex& index, const Sink& sink, const Which& which,
              StagedCopies* staged = nullptr, LaterState* later = nullptr)
      : rank_(rank), stream_(stream), index_(&index), sink_(&sink), which_(which), staged_(staged), later_(later) {}

  /// The same under names that start with "<scope>/".
  StateWriter in(std::string_view scope) const;
  /// Rank 0 saves state that all ranks have in common.
  int rank() const { return rank_; }
  const Which& which() const { return which_; }

  /// A dense tensor. Waits for its stream.
  void tensor(std::string_view name, const Tensor&);
  /// Memory of the device, or of the host.
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const void* from);
  /// A copy queued on the stream: the bytes of the array from `first` on.
  using Copy = std::function<void(StreamRef, int64_t first, std::span<std::byte> to)>;
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Copy& copy);
  /// Changed rows of an array.
  struct Changes {
    int64_t base_rows = 0;  ///< the base has these first ones
    std::string list;       ///< the array with the ascending indices of changed rows; "": none
    int64_t count = 0;
    /// Copies rows [first, first + rows) of the list to the host.
    std::function<void(int64_t first, int64_t rows, std::byte* to)> copy{};
  };
  /// In an increment: an array whose first rows the base has. `added` copies the bytes of the rows after these.
  void changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Changes&,
               const Copy& added);
  void changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Changes&,
               const void* added);
  /// Null: everything is read now. Otherwise owners of rows that do not change until they are read may append them
  /// here, and skip them in the state.
  LaterState* later() const { return later_; }
  /// An array of which only the first `rows` are copied now. Returns where the others go.
  LaterRows::Part part_of_array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                                const Copy& copy, int64_t rows);
  /// Writes an array, of which it copies only the first `rows` now. Returns where the others go.
  LaterRows::Part place_of_changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                                   const Changes&);
  template <class T>
  void list(std::string_view name, const std::vector<T>& values) {
    array(name, name_of(kDTypeOf<T>), {static_cast<int64_t>(values.size())}, values.data());
  }
  void number(std::string_view name, int64_t value) { index_->values.set(scope_ + std::string(name), value); }

 private:
  /// Notes an array at the end of the file. Returns it.
  StateArray& add(StateArray);
  StateArray& add_changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                          const Changes&);
  /// Hands the bytes that `copy` copies to the sink, for the file from `offset` on.
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
  /// Writes at the end.
  void write(std::span<const std::byte> bytes) { write_at(end_, bytes); }
  /// The same, by several threads.
  void write(std::span<const std::byte> bytes, ThreadPool& threads) { write_at(end_, bytes, threads); }
  /// Writes where nothing has been written.
  void write_at(int64_t offset, std::span<const std::byte>);
  void write_at(int64_t offset, std::span<const std::byte>, ThreadPool&);
  /// Writes rows that were left for later, in blocks.
  void write(const LaterRows&);
  /// Flushes the file to the disk; from then on it has its name. Fills in size and checksum.
  void commit(StateIndex&);

 private:
  struct Piece {
    int64_t bytes = 0;
    uint32_t crc = 0;
  };
  /// The piece that ends at this offset, or a new one.
  Piece& piece_before(int64_t offset);
  void put(int64_t offset, std::span<const std::byte>);

  AtomicFile file_;
  int64_t end_ = 0;                  // end of all that is written
  int64_t position_ = 0;             // the position at which the file continues
  std::map<int64_t, Piece> pieces_;  // pieces by offset
};

}  // namespace hctr
