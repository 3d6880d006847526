// Arrays in files of NumPy's format, version 1 to 3 (numpy.lib.format in its manual).
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// An array of one or two dimensions in C order, read row by row. Errors of all members: Error(io); Error(data) naming
/// the file when it is not such an array.
class NpyFile {
 public:
  explicit NpyFile(const fs::path&);
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }  ///< 1 for an array of one dimension
  /// The type as NumPy writes it, as "<f4".
  const std::string& type() const { return type_; }

  /// The next rows, of integers ("<i8", "<u4", ...); unsigned ones of 8 bytes keep their bits.
  std::vector<int64_t> read_integers(int64_t rows);
  /// The next rows, of "<f2", "<f4" or "<f8".
  std::vector<float> read_floats(int64_t rows);

 private:
  template <class T>
  std::vector<T> read(int64_t rows);

  fs::path path_;
  File file_;
  std::string type_;
  int64_t rows_ = 0, columns_ = 1;
};

}  // namespace hctr
