// How many bytes the parts of a step move for a table.
#pragma once

#include <string_view>

#include "engine/spec/table_spec.h"

namespace hctr {

/// What one batch of a rank uses of a table.
struct TableUse {
  double keys = 0, rows = 0;  ///< rows: different ones
};

/// Bytes of a row without its optimizer states, and of these states.
double vector_bytes_of_row(const TableSpec&);
double state_bytes_of_row(const TableSpec&);

/// What "prepare", "forward" or "update" reads and writes at least: keys, or rows and their states, or gradients; 0 for
/// other parts. `number_bytes`: of an element of the vectors that layers read.
double bytes_of_table(std::string_view part, const TableSpec&, const TableUse&, double number_bytes);

}  // namespace hctr
