// Detects columns whose cells hold several values, and their form.
#pragma once

#include <optional>

#include "prepare/init/column_guess.h"

namespace hctr {

/// The separator of a list column, as its index in ColumnFacts::lists: its values repeat in other lists.
std::optional<size_t> list_separator(const ColumnFacts&);

/// Whether most cells stand in brackets, and some of them hold several values there.
bool are_lists_in_brackets(const ColumnFacts&);
/// The first form of lists in brackets that splits the most cells.
size_t form_in_brackets(const ColumnFacts&);
/// "lists in brackets, but 2 values are none, the first is ..."; empty if all cells are.
std::string refused_words(const ListFacts&);

/// Whether nearly all values are numbers, some of them surely in a notation that is not read.
bool are_other_numbers(const ColumnFacts&);

/// Sets the guess to a list of that form.
void set_list(const ColumnFacts&, size_t form, ColumnGuess&);

/// Whether all cells are numbers with a decimal comma, as "1,5".
bool has_decimal_commas(const ColumnFacts&);

}  // namespace hctr
