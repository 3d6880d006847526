// Parses blocks of text into columns of values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/key_space.h"
#include "prepare/bad_rows.h"
#include "prepare/preprocess/text_table.h"
#include "prepare/text_source.h"

namespace hctr {

/// The code of a text in category number `category`: text_hash() with the seed slot_seed(0, category), as the Csv
/// reader hashes it, but for 0 and 1, which become 2 and 3. Two texts share a code with a probability of 2^-64.
uint64_t text_code(std::string_view text, size_t category);

/// The rows of a block that are right, by column.
struct ParsedRows {
  struct Category {
    std::vector<uint64_t> codes;  ///< [rows]; of a list the values of all rows, one after another
    std::vector<uint32_t> ends;   ///< of a list: [rows] where in `codes` each row's values end; else empty
  };
  size_t rows = 0;
  BadRowsFound bad;                          ///< rows left out
  std::vector<int64_t> index;                ///< [rows] of each row among all rows of the input
  std::vector<std::vector<float>> labels;    ///< [labels][rows]
  std::vector<std::vector<double>> numbers;  ///< [numbers][rows]; NaN: missing
  std::vector<Category> categories;
  std::vector<double> split;  ///< [rows], where the table has such a column
};

class TableParser {
 public:
  /// `modulo`, where above 0: a code becomes 2 + (code - 2) mod modulo.
  TableParser(TextTable, const BadRows&, uint64_t modulo = 0);

  const TextTable& table() const { return table_; }
  /// Fills `rows`, whose memory is used again. Errors: Error(data) naming file, line, byte, column and value of a row
  /// that is not right.
  void parse(const TextBlock&, ParsedRows& rows) const;

 private:
  std::string parse_row(std::span<const std::string_view> cells, ParsedRows& rows) const;
  uint64_t limited(uint64_t code) const { return modulo_ == 0 ? code : kFirstValue + (code - kFirstValue) % modulo_; }

  TextTable table_;
  BadRows bad_rows_;
  uint64_t modulo_;
  size_t labels_, numbers_, categories_;
  bool splits_ = false;
};

}  // namespace hctr
