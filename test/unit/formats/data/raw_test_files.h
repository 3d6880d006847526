// Writes small Raw data sets for tests from plain rows.
#pragma once

#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {

template <class T>
void put(std::vector<std::byte>& bytes, T value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

/// Returns rows as Raw bytes. If they are integers, labels and dense values are written unchanged, and the reader takes
/// the logarithm of dense values.
template <class Key = int32_t>
std::vector<std::byte> raw_bytes(const std::vector<Row>& rows, bool floats) {
  std::vector<std::byte> bytes;
  for (const Row& row : rows) {
    for (const auto* numbers : {&row.label, &row.dense})
      for (const float value : *numbers) floats ? put(bytes, value) : put(bytes, static_cast<int32_t>(value));
    for (const auto& slot : row.slots) put(bytes, static_cast<Key>(slot.at(0)));
  }
  return bytes;
}

}  // namespace hctr::data_test
