// Guesses the kind of a column from facts that are collected in one pass over the rows.
#pragma once

#include <optional>
#include <string>

#include "prepare/init/column_facts.h"

namespace hctr {

enum class GuessedKind {
  number,
  category,
  number_and_category,  ///< a number with few distinct values: used as a number and as a category
  list,
  time,      ///< seconds or milliseconds since 1970, used as a number
  left_out,  ///< ids, constants, free text, dates as text
};

struct ColumnGuess {
  std::string name;
  GuessedKind kind = GuessedKind::left_out;
  std::string why;            ///< the kind and the reason, as text for the user
  bool log = false;           ///< for numbers: whether to take logarithms, because few values are large
  char separator = 0;         ///< for lists in text: the separator
  bool brackets = false;      ///< whether lists are in brackets
  size_t form = 0;            ///< for lists in text: index in ColumnFacts::lists
  int64_t most_items = 1;     ///< for lists: number of items of the longest list
  bool integers = false;      ///< whether all values or list items are integers of at least 0
  bool missing = false;       ///< whether some rows have no value
  NumberNotation notation{};  ///< for numbers in text: their notation; plain if it has no format
  bool has_points = false;    ///< for plain numbers: whether some have a decimal point

  bool is_number() const {
    return kind == GuessedKind::number || kind == GuessedKind::number_and_category || kind == GuessedKind::time;
  }
  bool is_list_in_text() const { return kind == GuessedKind::list && (separator != 0 || brackets); }
  bool is_slot() const {
    return kind == GuessedKind::category || kind == GuessedKind::number_and_category || kind == GuessedKind::list;
  }
};

/// `format`: the notation of all numbers in the table, if the user states it.
ColumnGuess guess_column(const std::string& name, const ColumnFacts&, const std::optional<NumberFormat>& format = {});

}  // namespace hctr
