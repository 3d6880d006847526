// Counts the keys of evaluation batches that have no row in the tables: the model has not seen these keys in training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/json.h"
#include "core/base/log.h"
#include "formats/catalog/unlisted_keys.h"
#include "formats/data/batch_layout.h"
#include "hctr/unmatched_keys.h"
#include "net/model/replica.h"

namespace hctr {

/// Collects keys of batches on the host and looks up their rows afterward. One object per rank. After kMostKeys keys
/// over all ranks, only every second batch is collected, then every fourth, and so on.
class KeyMatches {
 public:
  static constexpr int64_t kMostKeys = int64_t{1} << 20;
  /// `groups`: the sparse input and the slot whose keys identify the groups of metrics.
  KeyMatches(const Config&, Communicator&, Replica&, std::optional<std::pair<size_t, int64_t>> groups = {});

  void clear();
  /// Collects the first `rows` rows of this rank's batch.
  void add(const BatchView&, int64_t rows);
  /// Returns the counts of the relevant slots, in order, on every rank. Relevant are slots whose rows are created
  /// during training, slots with vocabularies, and the slot of groups. Vocabulary values and groups are counted in all
  /// batches. Collective.
  std::vector<SlotMatches> count();

 private:
  struct Input {
    size_t index;                // index of the sparse input
    std::vector<size_t> tables;  // indices of the tables that read the input
    std::vector<SlotMatches> slots;
    std::vector<std::optional<int64_t>> unlisted;  // [slots] the key that all values outside the vocabulary share
    std::vector<std::vector<int64_t>> keys;        // [slots] collected keys, if some table reads the input
  };
  /// Updates the counts that need no row lookup.
  static void count_values(const BatchView&, const BatchView::Table&, int64_t rows, Input&);
  std::vector<SlotMatches> count(const Input&);
  /// Adds up, over all ranks, the counts that need no row lookup. Collective.
  void add_up(std::vector<SlotMatches>&);

  Communicator& comm_;
  Replica& model_;
  std::vector<Input> inputs_;
  int64_t kept_ = 0, most_ = 0, batches_ = 0, every_ = 1;
};

/// A slot with a larger fraction of unmatched keys causes a warning.
inline constexpr double kUnmatchedToWarn = 0.5;

/// The text "user_id 37.5 %, city 2 %": slots with unmatched keys by descending fraction, at most `most` slots.
std::string describe(const std::vector<SlotMatches>&, size_t most = 6);
/// Like describe(), for values that are not in the vocabulary of their slot.
std::string describe_unlisted(const std::vector<SlotMatches>&, size_t most = 6);
/// Up to three lines, about keys without a row, values missing in vocabularies, and samples without a group. A line
/// that applies to no slot is omitted.
std::vector<std::string> lines_of(const std::vector<SlotMatches>&);
/// Adds fractions per slot to a JSON object: "unmatched_keys" and, if there are such slots, "unlisted_values" and
/// "without_group".
void add_matches(const std::vector<SlotMatches>&, Json& object);
/// Warns if a slot's fraction exceeds kUnmatchedToWarn. `of`: describes the samples, such as "the evaluation samples".
void warn_of_unmatched(const std::vector<SlotMatches>&, const std::string& of, const Log&);
/// Logs lines_of() and calls warn_of_unmatched(). `data`: the path of the samples.
void report_unmatched(const std::vector<SlotMatches>&, const std::string& data, const Log&);
/// Errors: Error(data) if a slot has at least kUnmatchedToFail keys and none of them has a row, or at least
/// kUnmatchedToFail values and none of them is in the vocabulary. The error names these slots.
void expect_matches(const std::vector<SlotMatches>&, const std::string& data);

}  // namespace hctr
