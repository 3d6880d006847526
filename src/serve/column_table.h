// Turns columns of a request into an Arrow table in memory, which the model's data reader can read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/named_tensor.h"

namespace hctr::serve {

/// One column of `rows` rows.
struct TableColumn {
  std::string name;
  const NamedTensor* values = nullptr;  ///< null: every row's value is missing
  /// If not empty, rows are lists: row r has the values [ends[r], ends[r + 1]).
  std::vector<int32_t> ends{};
};

/// While the object exists, a config can use `source()` as its data path to read the table.
class ColumnTable {
 public:
  ColumnTable(int64_t rows, const std::vector<TableColumn>&);
  ~ColumnTable();
  ColumnTable(const ColumnTable&) = delete;
  ColumnTable& operator=(const ColumnTable&) = delete;
  const std::string& source() const { return source_; }

 private:
  std::string source_;
};

}  // namespace hctr::serve
