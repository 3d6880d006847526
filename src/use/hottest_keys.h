// The keys of each table that occur most: in training where its access statistics were saved, else in scored samples.
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
  /// `model`: model files. Tables with statistics next to them are not counted.
  KeyCounter(const Config&, const SavedModel& model);
  /// The first `rows` rows of a batch.
  void add(const BatchLayout&, std::byte* batch, int64_t rows);
  /// At most `most` keys of each table, ties by slot and key. Errors: those of read_access_stats().
  std::vector<HottestKeys> hottest(size_t most = 10) const;

 private:
  struct Table {
    std::string name;
    size_t input;  // the sparse input
    bool by_slot;
    fs::path statistics;  // empty: none
    // how often each key occurs, by slot or for all slots together
    std::vector<std::unordered_map<int64_t, int64_t>> times;
  };
  std::vector<Table> tables_;
  std::vector<std::vector<std::string>> slots_;  // names, by sparse input
};

}  // namespace hctr
