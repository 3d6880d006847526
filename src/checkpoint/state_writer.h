// Takes the state of a rank for a checkpoint: copies to the host during a stop, and files written later.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/thread_pool.h"
#include "checkpoint/state_index.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "device/tensor.h"

namespace hctr {

/// A piece of the state in host memory.
struct HostBytes {
  std::unique_ptr<std::byte[]> data;
  size_t bytes = 0;
  std::span<const std::byte> span() const { return {data.get(), bytes}; }
};

/// Copies from a GPU to host memory that was never used: page-locked memory between takes the copy, and threads spread
/// it. A copy straight there takes ten times as long, since one thread waits for each new page.
class StagedCopies {
 public:
  StagedCopies(Device, ThreadPool&);
  /// copy(first, span) starts to copy the bytes from `first` on, behind the work of the stream.
  void fill(std::span<std::byte> to, StreamRef,
            const std::function<void(int64_t first, std::span<std::byte> to)>& copy);

 private:
  HostBuffer memory_;  // in halves: one is filled while the other is read
  ThreadPool& threads_;
};

/// What the holders of state give to a checkpoint, under names. StateReader has the same calls, so that a holder lists
/// its state once, in a template that both pass through.
class StateWriter {
 public:
  using Sink = std::function<void(HostBytes)>;
  /// Which checkpoint it is: of an iteration, and whole or with what has changed since the whole one of iteration
  /// `base`.
  struct Which {
    int64_t iteration = 0;
    std::optional<int64_t> base{};
  };
  /// The state of `rank`, on the device of `stream`. Copies go to `sink` in the order of the file that `index`
  /// describes; both outlive the writer and those made by in(), as `staged` does, which may be null. Without a sink
  /// only sizes are noted.
  StateWriter(int rank, StreamRef stream, StateIndex& index, const Sink& sink, const Which& which,
              StagedCopies* staged = nullptr)
      : rank_(rank), stream_(stream), index_(&index), sink_(&sink), which_(which), staged_(staged) {}

  /// The same under names that start with "<scope>/".
  StateWriter in(std::string_view scope) const;
  /// What all ranks have alike is saved by rank 0.
  int rank() const { return rank_; }
  const Which& which() const { return which_; }

  /// A dense tensor. Waits for its stream.
  void tensor(std::string_view name, const Tensor&);
  /// Memory of the device, or of the host.
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const void* from);
  /// What `copy` copies behind the work of the stream: the bytes of the array from `first` on.
  using Copy = std::function<void(StreamRef, int64_t first, std::span<std::byte> to)>;
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Copy& copy);
  /// Rows of an array that have changed.
  struct Changes {
    int64_t base_rows = 0;  ///< the base has these first ones
    std::string list;       ///< the name of the list of those that have changed, ascending; "": none has
    int64_t count = 0;
    /// Copies rows [first, first + rows) of the list to the host.
    std::function<void(int64_t first, int64_t rows, std::byte* to)> copy{};
  };
  /// Of an increment: an array of which the base has rows. `added` copies the bytes of its rows behind these.
  void changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Changes&,
               const Copy& added);
  void changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Changes&,
               const void* added);
  template <class T>
  void list(std::string_view name, const std::vector<T>& values) {
    array(name, name_of(kDTypeOf<T>), {static_cast<int64_t>(values.size())}, values.data());
  }
  void number(std::string_view name, int64_t value) { index_->values.set(scope_ + std::string(name), value); }

 private:
  /// Notes an array at the end of the file. Returns it.
  StateArray& add(StateArray);
  /// Hands the bytes that `copy` copies to the sink.
  void copy_pieces(const Copy& copy, int64_t bytes);

  int rank_;
  StreamRef stream_;
  StateIndex* index_;
  const Sink* sink_;
  Which which_;
  StagedCopies* staged_;
  std::string scope_;
};

/// Writes the file of one rank and computes its size and checksum.
class StateFileWriter {
 public:
  /// Errors of all members: Error(io).
  explicit StateFileWriter(const fs::path& path) : file_(path) {}
  void write(std::span<const std::byte>);
  /// The same, by several threads.
  void write(std::span<const std::byte>, ThreadPool&);
  /// Flushes the file to the disk; from then on it has its name. Fills in size and checksum.
  void commit(StateIndex&);

 private:
  AtomicFile file_;
  int64_t bytes_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace hctr
