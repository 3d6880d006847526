// Which keys of evaluation batches have no row in the tables: the model has not seen them in training.
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

/// Collects keys of batches on the host, and asks the tables for their rows afterwards. One per rank. Once it has
/// kMostKeys of them on all ranks together, it looks at every second batch, then at every fourth, and so on.
class KeyMatches {
 public:
  static constexpr int64_t kMostKeys = int64_t{1} << 20;
  /// `groups`: the sparse input and its slot that metrics take groups from.
  KeyMatches(const Config&, Communicator&, Replica&, std::optional<std::pair<size_t, int64_t>> groups = {});

  void clear();
  /// The first `rows` rows of a batch of this rank.
  void add(const BatchView&, int64_t rows);
  /// Collective. The slots that tables read whose rows come with their keys, those with vocabularies, and that of
  /// groups, in order; on every rank. Values and groups of all batches are counted.
  std::vector<SlotMatches> count();

 private:
  struct Input {
    size_t index;                // index of the sparse input
    std::vector<size_t> tables;  // tables that read it
    std::vector<SlotMatches> slots;
    std::vector<std::optional<int64_t>> unlisted;  // [slots]: the key of values that a vocabulary lacks
    std::vector<std::vector<int64_t>> keys;        // [slots], where they have rows
  };
  /// Counts what needs no look-up.
  static void count_values(const BatchView&, const BatchView::Table&, int64_t rows, Input&);
  std::vector<SlotMatches> count(const Input&);
  /// Collective. Adds up what ranks have counted without a look-up.
  void add_up(std::vector<SlotMatches>&);

  Communicator& comm_;
  Replica& model_;
  std::vector<Input> inputs_;
  int64_t kept_ = 0, most_ = 0, batches_ = 0, every_ = 1;
};

/// A larger share of unmatched keys is a warning.
inline constexpr double kUnmatchedToWarn = 0.5;

/// "user_id 37.5 %, city 2 %": the slots with unmatched keys, those with the largest share first, at most `most`.
std::string describe(const std::vector<SlotMatches>&, size_t most = 6);
/// The same of values that vocabularies lack.
std::string describe_unlisted(const std::vector<SlotMatches>&, size_t most = 6);
/// Lines of all that matches nothing: of keys, values and groups, each where there are such slots.
std::vector<std::string> lines_of(const std::vector<SlotMatches>&);
/// Shares by the names of slots: "unmatched_keys", and where there are such slots "unlisted_values" and
/// "without_group".
void add_matches(const std::vector<SlotMatches>&, Json& object);
/// Warns of each slot whose share is above kUnmatchedToWarn. `of`: "the evaluation samples".
void warn_of_unmatched(const std::vector<SlotMatches>&, const std::string& of, const Log&);
/// Logs lines_of() and warns of what matches little. `data`: where the samples are.
void report_unmatched(const std::vector<SlotMatches>&, const std::string& data, const Log&);
/// Errors: Error(data) naming the slots with kUnmatchedToFail keys or more that match no row at all, and those with as
/// many values of which a vocabulary has none.
void expect_matches(const std::vector<SlotMatches>&, const std::string& data);

}  // namespace hctr
