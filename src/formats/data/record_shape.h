// The shape of one sample in a file: sizes fixed by the config, and limits on the number of keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hctr {

struct RecordShape {
  /// One sparse input.
  struct Input {
    std::string name;  ///< the `top` of the sparse input, for messages
    int64_t slots = 0;
    int64_t max_nnz = 0;         ///< maximum keys per slot
    int64_t max_keys = 0;        ///< maximum keys per sample over all slots
    std::vector<int64_t> nnz{};  ///< maximum keys of each slot; empty: max_nnz for every slot

    int64_t most_of(int64_t slot) const { return nnz.empty() ? max_nnz : nnz[static_cast<size_t>(slot)]; }
    /// Whether slot `slot` may have `nnz_of_slot` keys. `keys`: total keys of slots 0 to `slot`.
    bool allows(int64_t slot, int64_t nnz_of_slot, int64_t keys) const {
      return nnz_of_slot <= most_of(slot) && keys <= max_keys;
    }
    /// Whether one key per slot is within all limits.
    bool allows_one_hot() const {
      if (max_keys < slots) return false;
      for (int64_t s = 0; s < (nnz.empty() ? 1 : slots); ++s)
        if (most_of(s) < 1) return false;
      return true;
    }
    /// The reason why allows() rejects a sample: "slot 3 (of sparse input \"deep\") has 3 keys, more than its max_nnz
    /// of 2". `first_slot`: the index in the record of this input's slot 0.
    std::string excess(int64_t first_slot, int64_t slot, int64_t nnz_of_slot, int64_t keys) const;
    /// The text "slot 3 (of sparse input \"deep\")".
    std::string name_of(int64_t first_slot, int64_t slot) const;
  };
  int64_t label_dim = 0, dense_dim = 0;
  std::vector<Input> inputs;

  int64_t slots() const {
    int64_t sum = 0;
    for (const Input& input : inputs) sum += input.slots;
    return sum;
  }
  int64_t max_keys() const {
    int64_t sum = 0;
    for (const Input& input : inputs) sum += input.max_keys;
    return sum;
  }
  /// Whether one key per slot is within all limits.
  bool allows_one_hot() const {
    for (const Input& input : inputs)
      if (!input.allows_one_hot()) return false;
    return true;
  }
  /// Checks a sample in which slot s of the record has nnz_of(s) keys. Returns the first violation; empty if all limits
  /// are met.
  template <class NnzOf>
  std::string excess(const NnzOf& nnz_of) const {
    int64_t first = 0;
    for (const Input& input : inputs) {
      int64_t keys = 0;
      for (int64_t s = 0; s < input.slots; ++s) {
        const int64_t nnz = nnz_of(first + s);
        keys += nnz;
        if (!input.allows(s, nnz, keys)) return input.excess(first, s, nnz, keys);
      }
      first += input.slots;
    }
    return "";
  }
};

}  // namespace hctr
