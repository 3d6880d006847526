// Guesses the kind of a column from the facts of one pass over the rows.
#pragma once

#include <optional>
#include <string>

#include "prepare/init/column_facts.h"

namespace hctr {

enum class GuessedKind {
  number,
  category,
  number_and_category,  ///< a number with few different values: used as both
  list,
  time,      ///< seconds or milliseconds since 1970, used as a number
  left_out,  ///< ids, constants, free text, dates as text
};

struct ColumnGuess {
  std::string name;
  GuessedKind kind = GuessedKind::left_out;
  std::string why;            ///< the word for the kind and the reason, for people to read
  bool log = false;           ///< number: most values are small and some are large
  char separator = 0;         ///< list in a text: its separator
  bool brackets = false;      ///< lists are texts in brackets
  size_t form = 0;            ///< list in a text: its index in ColumnFacts::lists
  int64_t most_items = 1;     ///< list: items of the longest one
  bool integers = false;      ///< all values, or all of the lists, are integers of at least 0
  bool missing = false;       ///< some rows have no value
  NumberNotation notation{};  ///< number in a text; no format: plain
  bool has_points = false;    ///< plain number: some are written with a point

  bool is_number() const {
    return kind == GuessedKind::number || kind == GuessedKind::number_and_category || kind == GuessedKind::time;
  }
  bool is_list_in_text() const { return kind == GuessedKind::list && (separator != 0 || brackets); }
  bool is_slot() const {
    return kind == GuessedKind::category || kind == GuessedKind::number_and_category || kind == GuessedKind::list;
  }
};

/// `format`: the notation of all numbers in the table, if stated.
ColumnGuess guess_column(const std::string& name, const ColumnFacts&, const std::optional<NumberFormat>& format = {});

}  // namespace hctr
