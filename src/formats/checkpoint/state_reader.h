// Returns the state in a checkpoint to its owners.
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

/// The state that rank 0 passed to a StateWriter, in the memory of this process.
struct StateInMemory {
  StateIndex index;
  std::vector<HostBytes> pieces;  ///< pieces in the order of the file
};

/// The state of one rank of the run that wrote a checkpoint. For an increment, the state of the base with the changes
/// applied. Cheap to copy; copies are used by one thread. Errors of all members: Error(io); Error(data) naming file and
/// array, when the checkpoint does not hold the requested state.
class StateReader {
 public:
  /// `exact`: whether this run has the ranks and the placement of the saved one, so that each rank restores its own
  /// state; otherwise rows are found by their keys. `rank`: of this run.
  StateReader(fs::path folder, Manifest manifest, bool exact, int rank, StreamRef stream);
  /// The state that the same rank saved.
  StateReader(std::shared_ptr<const StateInMemory>, StreamRef);

  StateReader in(std::string_view scope) const;
  /// The state that another rank of that run saved, or, for state common to all, rank 0.
  StateReader of_rank(int rank) const;
  bool exact() const { return input_->exact; }
  /// The rank and number of ranks of this run.
  int rank() const { return input_->rank; }
  /// Ranks of the run that wrote the checkpoint.
  int ranks() const { return static_cast<int>(input_->manifest.files.size()); }

  /// Whether there is an array or a number of this name.
  bool has(std::string_view name) const;
  // The same calls as StateWriter's; they fill their arguments.
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

  /// The full checkpoint on which later increments can build, and the rows of an array that it has.
  struct Base {
    int64_t iteration = 0, rows = 0;
  };
  /// This checkpoint if it is full, else its own base. None if that lacks the rows of this array, or its folder is not
  /// named like a checkpoint.
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
    std::shared_ptr<const StateInMemory> memory{};                          // the state in memory, if it is in no file
    std::map<std::pair<int, std::string>, std::vector<int32_t>> changed{};  // lists that were read, by rank and name
  };
  const StateIndex& index() const { return input_->manifest.files.at(static_cast<size_t>(of_rank_)); }
  std::string place(std::string_view name) const;
  /// The indices of the rows that an increment has changed, ascending.
  const std::vector<int32_t>& changed_rows(const StateArray&) const;
  /// read() of an array of an increment.
  void read_with_base(const StateArray&, int64_t first, std::span<std::byte> to) const;

  std::shared_ptr<Input> input_;  // shared by the readers made from one
  int of_rank_ = 0;
  std::string scope_;
};

}  // namespace hctr
