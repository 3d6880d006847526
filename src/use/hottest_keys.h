// Finds the most frequent keys of each table: by the model's access statistics of the training data, if it has any,
// otherwise by counting the keys of the scored samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "config/sections/config.h"
#include "formats/data/batch_layout.h"
#include "infer/saved_model.h"
#include "use/scored_sample.h"

namespace hctr {

class KeyCounter {
 public:
  /// `model`: a saved model. Keys of samples are counted only for tables without saved access statistics.
  KeyCounter(const Config&, const SavedModel& model);
  /// Counts the keys in the first `rows` rows of a batch.
  void add(const BatchLayout&, std::byte* batch, int64_t rows);
  /// Returns at most `most` keys per table; ties are ordered by slot and key. Errors: those of read_access_stats().
  std::vector<HottestKeys> hottest(size_t most = 10) const;

 private:
  struct Table {
    std::string name;
    size_t input;  // the sparse input
    bool by_slot;
    fs::path statistics;  // empty: the table has no access statistics
    // occurrences by key: if `by_slot`, one map per slot, otherwise one map for all slots
    std::vector<std::unordered_map<int64_t, int64_t>> times;
  };
  std::vector<Table> tables_;
  std::vector<std::vector<std::string>> slots_;  // slot names, by sparse input
};

}  // namespace hctr
