// From a Criteo row to the numbers of a record: which features there are, and the keys that stand for their values.
#pragma once

#include <cstdint>
#include <vector>

#include "data/key_space.h"
#include "data/norm_style.h"
#include "data/text/criteo_rows.h"

namespace hctr {

enum class Wide { none, all, cross };
enum class Integers { dense, buckets, both };

struct CriteoStyle {
  Wide wide = Wide::none;
  Integers integers = Integers::dense;
  int64_t buckets = 0;  ///< keys per column; 0: a key of its own for every value, by hashing
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

/// One value of one column, before it is a key. Columns: 1-26 are C1..C26, 27-39 the bucketed I1..I13, 40 is C1 x C2,
/// 41 is C3 x C4.
struct Feature {
  uint32_t column;
  uint64_t value;
};
inline constexpr uint32_t kCriteoColumns = 41;

/// The dense value of an integer: ln(1 + max(v, 0)); 0 when missing.
float dense_value(const std::optional<int64_t>& integer);
/// The bucket of an integer: floor(ln(v)^2) above 2, a bucket for each value up to 2, one for missing.
uint64_t bucket_value(const std::optional<int64_t>& integer);

/// A pair of values, as categories have them, as one value.
uint64_t cross_value(uint64_t a, uint64_t b);
/// The columns whose features a record has, in rising order.
std::vector<uint32_t> criteo_columns(const CriteoStyle&);

/// The features of a row in the order of the record's keys: those of the wide slot, then one for each deep slot.
void criteo_features(const CriteoStyle&, const CriteoRow&, std::vector<Feature>& features);

/// The key of a feature; two columns never share one.
///   buckets = N  (column - 1) * N + (missing: 0, rare: 1, else 2 + mix64(value) mod (N - 2))
///   64 bits      scattered_key(column * 2^57 + value): distinct values have distinct keys, crosses but for chance
///   32 bits      column * 2^26 + (missing: 0, rare: 1, else 2 + mix64(value) mod (2^26 - 2))
int64_t criteo_key(const CriteoStyle&, Feature);

/// The keys of all `features`, appended; the same as one by one, and faster.
void append_criteo_keys(const CriteoStyle&, const std::vector<Feature>& features, std::vector<int64_t>& keys);

/// Errors: Error(usage) when the options do not fit together.
void check_criteo_style(const CriteoStyle&);

}  // namespace hctr
