// What one sample on file must look like: sizes fixed by the config and the limits its keys must keep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hctr {

struct RecordShape {
  struct Input {
    std::string name;  ///< the `top` of the sparse input, for messages
    int64_t slots = 0;
    int64_t max_nnz = 0;         ///< most keys of one slot
    int64_t max_keys = 0;        ///< most keys of one sample in all its slots
    std::vector<int64_t> nnz{};  ///< most keys of each slot; empty: max_nnz for all

    int64_t most_of(int64_t slot) const { return nnz.empty() ? max_nnz : nnz[static_cast<size_t>(slot)]; }
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
};

}  // namespace hctr
