// Columns whose kind the user states with --category, --number or --list, which overrides the guess.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prepare/init/column_guess.h"
#include "prepare/init/init.h"

namespace hctr {

/// The stated kind of a column. Category and number together mean both.
struct StatedKind {
  bool category = false, number = false, list = false;

  bool any() const { return category || number || list; }
};
StatedKind stated_kind(const std::string& name, const InitOptions&);

/// Makes the column of the stated kind. `format`: the notation of all numbers in the table, if stated. Errors:
/// Error(usage) with the first value that cannot be of this kind.
ColumnGuess stated_column(const std::string& name, const ColumnFacts&, const StatedKind&,
                          const std::optional<NumberFormat>& format = {});

/// Checks the columns that options name. Errors: Error(usage) for a column that does not exist, with the nearest name,
/// and for contradicting options.
void expect_stated_columns(const InitOptions&, const std::vector<std::string>& columns);

}  // namespace hctr
