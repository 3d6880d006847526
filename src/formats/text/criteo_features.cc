#include "formats/text/criteo_features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "formats/data/log_of_count.h"

namespace hctr {
namespace {

constexpr uint64_t kValueBits = 57;  // bits per value; the column index has the other 6 of 63 bits

uint64_t category_value(const std::optional<uint32_t>& category) {
  return category ? kFirstValue + *category : kMissing;
}

}  // namespace

/// Hashes a pair of values, because a pair exceeds 57 bits. Two pairs collide with probability 2^-57.
uint64_t cross_value(uint64_t a, uint64_t b) {
  constexpr uint64_t values = (uint64_t{1} << kValueBits) - kFirstValue;
  return kFirstValue + pair_code(a, b) % values;
}

std::vector<uint32_t> criteo_columns(const CriteoStyle& style) {
  const bool buckets = style.has_bucket_slots() || style.wide == Wide::all;
  std::vector<uint32_t> columns(kCriteoCategories + (buckets ? kCriteoIntegers : 0));
  std::iota(columns.begin(), columns.end(), 1);
  if (style.wide == Wide::cross) columns.insert(columns.end(), {40, 41});
  return columns;
}

NormStyle CriteoStyle::norm() const {
  return {.label_dim = 1,
          .dense_dim = dense_dim(),
          .slots = deep_slots() + (wide == Wide::none ? 0 : 1),
          .check = check,
          .key_bytes = key_bytes};
}

float dense_value(const std::optional<int64_t>& integer) {
  return integer ? log_of_count(std::max<int64_t>(*integer, 0)) : 0.0f;
}

uint64_t bucket_value(const std::optional<int64_t>& integer) {
  if (!integer) return kMissing;
  if (*integer <= 2) {  // integers up to 2 map to separate values above all buckets
    constexpr int64_t depth = int64_t{1} << 40;
    return kFirstValue + (uint64_t{1} << 41) + static_cast<uint64_t>(2 - std::max(*integer, -depth));
  }
  const double log = std::log(static_cast<double>(*integer));
  return kFirstValue + static_cast<uint64_t>(log * log);
}

void criteo_features(const CriteoStyle& style, const CriteoRow& row, std::vector<Feature>& features) {
  features.clear();
  const auto add_categories = [&] {
    for (uint32_t i = 0; i < kCriteoCategories; ++i) features.push_back({1 + i, category_value(row.categories[i])});
  };
  const auto add_buckets = [&] {
    for (uint32_t i = 0; i < kCriteoIntegers; ++i)
      features.push_back({1 + kCriteoCategories + i, bucket_value(row.integers[i])});
  };
  const auto add_cross = [&](uint32_t column, size_t a, size_t b) {
    features.push_back({column, cross_value(category_value(row.categories[a]), category_value(row.categories[b]))});
  };
  if (style.wide == Wide::all) {
    add_categories();
    add_buckets();
  } else if (style.wide == Wide::cross) {
    add_cross(40, 0, 1);
    add_cross(41, 2, 3);
  }
  add_categories();
  if (style.has_bucket_slots()) add_buckets();
}

int64_t criteo_key(const CriteoStyle& style, Feature feature) {
  if (style.buckets > 0)
    return (int64_t{feature.column} - 1) * style.buckets +
           static_cast<int64_t>(ranged_key(feature.value, static_cast<uint64_t>(style.buckets)));
  if (style.key_bytes == 8) return scattered_key(uint64_t{feature.column} << kValueBits | feature.value);
  return (int64_t{feature.column} << 26) + static_cast<int64_t>(ranged_key(feature.value, uint64_t{1} << 26));
}

void append_criteo_keys(const CriteoStyle& style, const std::vector<Feature>& features, std::vector<int64_t>& keys) {
  const size_t before = keys.size();
  keys.resize(before + features.size());
  int64_t* to = keys.data() + before;
  if (style.buckets == 0 && style.key_bytes == 8) {
    for (size_t i = 0; i < features.size(); ++i)
      to[i] = static_cast<int64_t>(uint64_t{features[i].column} << kValueBits | features[i].value);
    scatter_keys(to, static_cast<int32_t>(features.size()));
  } else {
    for (size_t i = 0; i < features.size(); ++i) to[i] = criteo_key(style, features[i]);
  }
}

void check_criteo_style(const CriteoStyle& style) {
  if (style.buckets != 0 && style.buckets < 3)
    throw Error(Kind::usage,
                cat("--buckets ", style.buckets, ": each column needs at least 3 keys: missing, rare, and one more"));
  const int64_t most =
      (style.key_bytes == 4 ? int64_t{std::numeric_limits<uint32_t>::max()} : int64_t{1} << 60) / kCriteoColumns;
  if (style.buckets > most)
    throw Error(Kind::usage,
                cat("--buckets ", style.buckets, ": keys of ", style.key_bytes * 8, " bits allow at most ", most));
}

}  // namespace hctr
