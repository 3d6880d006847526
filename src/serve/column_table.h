// Columns of a request as a table in memory, which the reader of the model's data reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/named_tensor.h"

namespace hctr::serve {

/// One column of `rows` rows.
struct TableColumn {
  std::string name;
  const NamedTensor* values = nullptr;  ///< null: no row has a value
  /// Rows are lists where it is not empty: row r has the values [ends[r], ends[r + 1]).
  std::vector<int32_t> ends{};
};

/// While it lives, `source()` names the table where a config has a path.
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
