// Which keys of evaluation batches have no row in the tables: the model has not seen them in training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/json.h"
#include "data/batch_layout.h"
#include "hctr/unmatched_keys.h"
#include "model/model.h"

namespace hctr {

/// Collects keys of batches on the host, and asks the tables for their rows afterwards. One per rank. Once it has
/// kMostKeys of them on all ranks together, it looks at every second batch, then at every fourth, and so on.
class KeyMatches {
 public:
  static constexpr int64_t kMostKeys = int64_t{1} << 20;
  KeyMatches(const Config&, Communicator&, Model&);

  void clear();
  /// The first `rows` rows of a batch of this rank.
  void add(const BatchView&, int64_t rows);
  /// Collective. The slots that tables read whose rows come with their keys, in
  /// order; on every rank.
  std::vector<SlotMatches> count();

 private:
  struct Input {
    size_t index;                // of the sparse input
    std::vector<size_t> tables;  // that read it
    std::vector<std::string> slots;
    std::vector<std::vector<int64_t>> keys;  // [slots]
  };
  std::vector<SlotMatches> count(const Input&);

  Communicator& comm_;
  Model& model_;
  std::vector<Input> inputs_;
  int64_t kept_ = 0, most_ = 0, batches_ = 0, every_ = 1;
};

/// A larger share of unmatched keys is a warning.
inline constexpr double kUnmatchedToWarn = 0.5;
/// A slot with so many keys, none of which has a row, is an error where nothing is trained.
inline constexpr int64_t kUnmatchedToFail = 100;

/// "user_id 37.5 %, city 2 %": the slots with unmatched keys, those with the largest share first, at most `most`.
std::string describe(const std::vector<SlotMatches>&, size_t most = 6);
/// Shares by the names of slots.
Json to_json(const std::vector<SlotMatches>&);
/// Warns of each slot whose share is above kUnmatchedToWarn. `of`: "the evaluation samples".
void warn_of_unmatched(const std::vector<SlotMatches>&, const std::string& of, const Log&);
/// Errors: Error(data) naming the slots with kUnmatchedToFail keys or more that match no row at all.
void expect_matches(const std::vector<SlotMatches>&, const std::string& data);

}  // namespace hctr
