// Columns whose kind the user states with --category, --number and --list, which overrides the guess.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prepare/init/column_guess.h"
#include "prepare/init/init.h"

namespace hctr {

/// The stated kinds of a column; category and number together mean both.
struct StatedKind {
  bool category = false, number = false, list = false;

  bool any() const { return category || number || list; }
};
StatedKind stated_kind(const std::string& name, const InitOptions&);

/// The column with its stated properties; `format`: the notation of all numbers of the table, if stated. Errors:
/// Error(usage) naming the first value that contradicts them.
ColumnGuess stated_column(const std::string& name, const ColumnFacts&, const StatedKind&,
                          const std::optional<NumberFormat>& format = {});

/// Checks the columns that options name. Errors: Error(usage) for those that do not exist, naming the nearest, and for
/// options that contradict each other.
void expect_stated_columns(const InitOptions&, const std::vector<std::string>& columns);

}  // namespace hctr
