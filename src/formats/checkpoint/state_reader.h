// Restores the state in a checkpoint to the objects that saved it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/device/stream.h"
#include "core/device/tensor.h"
#include "formats/checkpoint/manifest.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {

/// The state that rank 0 passed to a StateWriter, kept in this process's memory instead of a file.
struct StateInMemory {
  StateIndex index;
  std::vector<HostBytes> pieces;  ///< sorted by offset in the file
};

/// Reads the state that one rank saved in a checkpoint. For an increment, reads the base's state with the changes
/// applied. Copies are cheap, but not thread-safe, so use all copies in one thread. Errors of all members: Error(io);
/// Error(data) naming file and array if the checkpoint lacks the requested state.
class StateReader {
 public:
  /// `exact`: whether this run has the same ranks and placement as the saved run. If so, each rank restores its own
  /// file; otherwise ranks find their rows by key. `rank`: the rank in this run.
  StateReader(fs::path folder, Manifest manifest, bool exact, int rank, StreamRef stream);
  /// Reads in-memory state that the same rank saved.
  StateReader(std::shared_ptr<const StateInMemory>, StreamRef);

  StateReader in(std::string_view scope) const;
  /// A reader for the state of another rank of the saved run. Rank 0 has the state common to all ranks.
  StateReader of_rank(int rank) const;
  bool exact() const { return input_->exact; }
  /// The rank in the current run.
  int rank() const { return input_->rank; }
  /// Number of ranks of the saved run.
  int ranks() const { return static_cast<int>(input_->manifest.files.size()); }

  /// Whether the state has an array or a number `name`.
  bool has(std::string_view name) const;
  // Each of these functions reads what the StateWriter function of the same name saved, and writes it to its arguments.
  void tensor(std::string_view name, const Tensor&) const;
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, void* to) const;
  using Copy = std::function<void(StreamRef, int64_t first, std::span<const std::byte> from)>;
  void array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape, const Copy& copy) const;
  template <class T>
  void list(std::string_view name, std::vector<T>& values) const {
    const StateArray& from = at(name);
    values.resize(static_cast<size_t>(from.elements()));
    array(name, name_of(kDTypeOf<T>), {from.elements()}, values.data());
  }
  int64_t number(std::string_view name) const;
  void number(std::string_view name, int64_t& value) const { value = number(name); }

  /// A full checkpoint that later increments can be based on: its iteration, and how many rows of one array the
  /// checkpoint contains.
  struct Base {
    int64_t iteration = 0, rows = 0;
  };
  /// The base for increments on this checkpoint: the checkpoint itself if full, else its base. Empty if the base has no
  /// rows of this array, or if the base's folder is not named like a checkpoint.
  std::optional<Base> base_of_next(const StateArray&) const;
  const StateArray& at(std::string_view name) const;
  /// Reads bytes [first, first + to.size()) of an array.
  void read(const StateArray&, int64_t first, std::span<std::byte> to) const;

 private:
  struct Input {
    fs::path folder;
    Manifest manifest;
    bool exact;
    int rank;
    StreamRef stream;
    std::shared_ptr<const StateInMemory> memory{};  // state in memory; null: read from files
    // indices of changed rows, cached by rank and array name
    std::map<std::pair<int, std::string>, std::vector<int32_t>> changed{};
  };
  const StateIndex& index() const { return input_->manifest.files.at(static_cast<size_t>(of_rank_)); }
  std::string place(std::string_view name) const;
  /// The ascending indices of rows that the increment changed.
  const std::vector<int32_t>& changed_rows(const StateArray&) const;
  /// Implements read() for an array of an increment.
  void read_with_base(const StateArray&, int64_t first, std::span<std::byte> to) const;

  std::shared_ptr<Input> input_;  // shared with readers from in() and of_rank()
  int of_rank_ = 0;
  std::string scope_;
};

}  // namespace hctr
