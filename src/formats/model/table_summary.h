// Summarizes a saved table for display: rows per slot, vector norms, rows with the largest norms.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/model/sparse_reader.h"

namespace hctr {

class TableSummary {
 public:
  /// `top`: number of rows with the largest norms to keep.
  TableSummary(int64_t dim, int64_t top) : dim_(dim), top_(top) {}
  void add(const SparseRows&);

  struct Row {
    int64_t key;
    uint64_t slot;
    double norm;  ///< Euclidean norm of the row's vector
  };
  /// A histogram bin of norms in [2^exponent, 2^(exponent + 1)).
  struct Bin {
    int exponent;
    int64_t rows;
  };

  int64_t rows() const { return rows_; }
  int64_t smallest_key() const { return smallest_key_; }
  int64_t largest_key() const { return largest_key_; }
  int64_t rows_of_zeros() const { return zeros_; }
  int64_t rows_not_finite() const { return not_finite_; }  ///< rows with Inf or NaN, which the norms exclude
  double mean_norm() const;
  double smallest_norm() const { return smallest_norm_; }
  double largest_norm() const { return largest_norm_; }
  /// The median norm, accurate to 1 %.
  double median_norm() const;
  std::vector<Bin> histogram() const;
  const std::map<uint64_t, int64_t>& rows_per_slot() const { return per_slot_; }
  /// Rows with the largest norms in descending order; ties by slot and key.
  std::vector<Row> largest() const;

 private:
  static constexpr int kFine = 64;  // histogram bins per power of two
  int64_t dim_, top_;
  int64_t rows_ = 0, zeros_ = 0, not_finite_ = 0;
  int64_t smallest_key_ = INT64_MAX, largest_key_ = INT64_MIN;
  double sum_ = 0, smallest_norm_ = 0, largest_norm_ = 0;
  std::map<int, int64_t> fine_;  // floor(kFine * log2(norm)) -> number of rows
  std::map<uint64_t, int64_t> per_slot_;
  std::vector<Row> largest_;  // a heap; the front has the smallest norm
};

}  // namespace hctr
