// Parses blocks of text into columns of values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/key_space.h"
#include "prepare/bad_rows.h"
#include "prepare/preprocess/text_table.h"
#include "prepare/text_source.h"

namespace hctr {

/// The code of a text in category `category`: text_hash() with seed slot_seed(0, category), as in the Csv reader,
/// except that 0 and 1 become 2 and 3. Two texts collide with probability 2^-64.
uint64_t text_code(std::string_view text, size_t category);

/// The good rows of a block, by column.
struct ParsedRows {
  struct Category {
    std::vector<uint64_t> codes;  ///< [rows]; for a list column, the values of all rows in sequence
    std::vector<uint32_t> ends;   ///< for a list column: [rows] end of each row's values in `codes`; else empty
  };
  size_t rows = 0;
  BadRowsFound bad;                          ///< skipped rows
  std::vector<int64_t> index;                ///< [rows] number of each row in the input
  std::vector<size_t> begin;                 ///< [rows] byte offset of each row in the block
  std::vector<std::vector<float>> labels;    ///< [labels][rows]
  std::vector<std::vector<double>> numbers;  ///< [numbers][rows]; NaN: missing
  std::vector<Category> categories;
  std::vector<double> split;  ///< [rows]; only if the table has a split column
};

class TableParser {
 public:
  /// `modulo` > 0: a code becomes 2 + (code - 2) mod modulo. `as_integers`: labels and numbers must fit int32, and
  /// numbers that are not whole are rounded.
  TableParser(TextTable, const BadRows&, uint64_t modulo = 0, bool as_integers = false);

  const TextTable& table() const { return table_; }
  /// Parses a block into `rows`, whose memory is reused. Errors: Error(data) with file, line, byte, column and value of
  /// a bad row.
  void parse(const TextBlock&, ParsedRows& rows) const;

 private:
  void clear(size_t most, ParsedRows& rows) const;
  std::string read_list(std::string_view cell, const TextColumn&, ParsedRows& rows) const;
  bool read_cell(std::string_view cell, const TextColumn&, ParsedRows& rows) const;
  bool fits_integer(const TextColumn&, const ParsedRows& rows) const;
  std::string parse_row(std::span<const std::string_view> cells, ParsedRows& rows) const;
  std::vector<std::string> partitions_of(const std::string& file) const;
  uint64_t limited(uint64_t code) const { return modulo_ == 0 ? code : kFirstValue + (code - kFirstValue) % modulo_; }

  TextTable table_;
  BadRows bad_rows_;
  uint64_t modulo_;
  bool as_integers_;
  size_t labels_, numbers_, categories_;
  bool splits_ = false, uses_partitions_ = false;
};

}  // namespace hctr
