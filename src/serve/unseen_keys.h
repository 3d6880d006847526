// Counts keys of requests that have no row in the model's tables.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "infer/sample_arrays.h"
#include "infer/served_model.h"

namespace hctr::serve {

/// Counts keys of only a sample of the requests, because looking up every key a second time would slow scoring.
/// Thread-safe.
class UnseenKeys {
 public:
  /// The model must outlive this object.
  explicit UnseenKeys(ServedModel&);

  /// Keeps the keys of every kEvery-th call for the next count(). Ignores them once kMostKeys keys are
  /// kept, and while another thread calls add() or count().
  void add(const SampleArrays&);
  /// Totals since the start, for each slot that a table with a hash index reads. `unseen`: keys for which at least one
  /// of these tables has no row and returns its default vector. If a level of a store fails, the kept keys are not
  /// counted.
  struct Slot {
    std::string name;
    int64_t keys = 0, unseen = 0;
  };
  std::vector<Slot> count();

 private:
  static constexpr int64_t kEvery = 16, kMostKeys = int64_t{1} << 16;
  struct Input {
    std::vector<size_t> tables;  // embeddings with a hash index that read this sparse input
    std::vector<Slot> slots;
    std::vector<std::pair<int32_t, int64_t>> kept;  // slot and key
  };
  ServedModel& model_;
  std::mutex mutex_;  // guards the members below
  std::vector<Input> inputs_;
  int64_t calls_ = 0, kept_ = 0;
};

}  // namespace hctr::serve
