// Converts a Criteo row to the features of a record and their keys.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/data/key_space.h"
#include "formats/data/norm_style.h"
#include "formats/text/criteo_rows.h"

namespace hctr {

enum class Wide { none, all, cross };
enum class Integers { dense, buckets, both };

struct CriteoStyle {
  Wide wide = Wide::none;
  Integers integers = Integers::dense;
  int64_t buckets = 0;  ///< keys per column; 0: a separate key per value
  int key_bytes = 8;
  Check check = Check::sum;

  bool has_dense() const { return integers != Integers::buckets; }
  bool has_bucket_slots() const { return integers != Integers::dense; }
  int64_t deep_slots() const { return kCriteoCategories + (has_bucket_slots() ? kCriteoIntegers : 0); }
  int64_t wide_keys() const {
    return wide == Wide::all ? kCriteoCategories + kCriteoIntegers : wide == Wide::cross ? 2 : 0;
  }
  int64_t dense_dim() const { return has_dense() ? kCriteoIntegers : 0; }
  NormStyle norm() const;
};

/// The value of a column before it is mapped to a key. Columns: 1-26 are C1..C26, 27-39 the bucketed I1..I13, 40 is C1
/// x C2, 41 is C3 x C4.
struct Feature {
  uint32_t column;
  uint64_t value;
};
inline constexpr uint32_t kCriteoColumns = 41;

/// Returns the dense value of an integer: ln(1 + max(v, 0)); 0 if missing.
float dense_value(const std::optional<int64_t>& integer);
/// Returns the bucket of an integer v: floor(ln(v)^2) if v > 2, else a separate bucket per value. A missing value has
/// its own bucket.
uint64_t bucket_value(const std::optional<int64_t>& integer);

/// Combines two category values into one.
uint64_t cross_value(uint64_t a, uint64_t b);
/// The columns with features in a record, in ascending order.
std::vector<uint32_t> criteo_columns(const CriteoStyle&);

/// Sets the features of a row in the order of the record's keys: first all features of the wide slot, then one feature
/// per deep slot.
void criteo_features(const CriteoStyle&, const CriteoRow&, std::vector<Feature>& features);

/// Returns the key of a feature. Keys of different columns differ.
///   buckets = N  (column - 1) * N + (missing: 0, rare: 1, else 2 + mix64(value) mod (N - 2))
///   64 bits      scattered_key(column * 2^57 + value): distinct values have distinct keys; crosses may collide
///   32 bits      column * 2^26 + (missing: 0, rare: 1, else 2 + mix64(value) mod (2^26 - 2))
int64_t criteo_key(const CriteoStyle&, Feature);

/// Appends the keys of all `features`. Equivalent to calls of criteo_key(), but faster.
void append_criteo_keys(const CriteoStyle&, const std::vector<Feature>& features, std::vector<int64_t>& keys);

/// Checks the options. Errors: Error(usage) if options contradict each other.
void check_criteo_style(const CriteoStyle&);

}  // namespace hctr
