// The bytes that the parts of a step read and write for a table.
#pragma once

#include <string_view>

#include "engine/spec/table_spec.h"

namespace hctr {

/// The use of a table by one batch of a rank.
struct TableUse {
  double keys = 0, rows = 0;  ///< `rows`: number of distinct rows
};

/// vector_bytes_of_row(): bytes of a row without its optimizer states. state_bytes_of_row(): bytes of its optimizer
/// states.
double vector_bytes_of_row(const TableSpec&);
double state_bytes_of_row(const TableSpec&);

/// The minimum number of bytes that `part` reads and writes. "prepare" accesses the keys, "forward" the rows and the
/// pooled vectors, "update" the gradients and the rows with their optimizer states. Returns 0 for other parts.
/// `number_bytes`: bytes per element of the vectors that layers read.
double bytes_of_table(std::string_view part, const TableSpec&, const TableUse&, double number_bytes);

}  // namespace hctr
