// Reads arrays from NumPy .npy files, versions 1 to 3 (numpy.lib.format in NumPy's manual).
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// A one- or two-dimensional array in C order, read row by row. Errors of all members: Error(io); Error(data) naming
/// the file if the file does not contain such an array.
class NpyFile {
 public:
  explicit NpyFile(const fs::path&);
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }  ///< 1 for a one-dimensional array
  /// The dtype in NumPy's notation, such as "<f4".
  const std::string& type() const { return type_; }

  /// Reads the next rows of an integer array ("<i8", "<u4", ...). An 8-byte unsigned integer is reinterpreted as
  /// signed.
  std::vector<int64_t> read_integers(int64_t rows);
  /// Reads the next rows of a "<f2", "<f4" or "<f8" array.
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
