// Detects columns whose cells have several values, and the form of these lists.
#pragma once

#include <optional>

#include "prepare/init/column_guess.h"

namespace hctr {

/// The separator of a list column, as an index in ColumnFacts::lists. The values must repeat across lists.
std::optional<size_t> list_separator(const ColumnFacts&);

/// Whether most cells are in brackets and some of these have several values.
bool are_lists_in_brackets(const ColumnFacts&);
/// The list form that splits the most cells in brackets. If several forms split equally many cells, the first of these
/// forms.
size_t form_in_brackets(const ColumnFacts&);
/// A text such as "lists in brackets, but 2 values are none, the first is ...". Empty if all cells are lists of this
/// form.
std::string refused_words(const ListFacts&);

/// Whether nearly all values are numbers, at least one of them certainly a number in an unsupported notation.
bool are_other_numbers(const ColumnFacts&);

/// Sets the guess to a list of form `form`.
void set_list(const ColumnFacts&, size_t form, ColumnGuess&);

/// Whether all cells are numbers with a decimal comma, such as "1,5".
bool has_decimal_commas(const ColumnFacts&);

}  // namespace hctr
