// The bytes that the parts of a step move for a table.
#pragma once

#include <string_view>

#include "engine/spec/table_spec.h"

namespace hctr {

/// The use of a table by one batch of a rank.
struct TableUse {
  double keys = 0, rows = 0;  ///< rows: distinct ones
};

/// Bytes of a row without its optimizer states, and of these states.
double vector_bytes_of_row(const TableSpec&);
double state_bytes_of_row(const TableSpec&);

/// The minimum bytes that "prepare", "forward" or "update" reads and writes: keys, rows with their states, or
/// gradients; 0 for other parts. `number_bytes`: per element of the vectors that layers read.
double bytes_of_table(std::string_view part, const TableSpec&, const TableUse&, double number_bytes);

}  // namespace hctr
