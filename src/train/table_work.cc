#include "train/table_work.h"

namespace hctr {

double vector_bytes_of_row(const TableSpec& spec) {
  return static_cast<double>(spec.dim) * static_cast<double>(size_of(spec.storage));
}

double state_bytes_of_row(const TableSpec& spec) {
  return spec.optimizer.states() * static_cast<double>(spec.state_dim()) *
         static_cast<double>(size_of(spec.stored_states()));
}

double bytes_of_table(std::string_view part, const TableSpec& spec, const TableUse& use, double number_bytes) {
  const double row = vector_bytes_of_row(spec),
               vectors = static_cast<double>(spec.samples * spec.columns() * spec.dim) * number_bytes;
  // Bytes per key: 8 to read the key, 16 to read its index entry, 4 to write its row number, and 2 * 8 to sort pairs of
  // row and position.
  constexpr double kKey = 8 + 16 + 4 + 2 * 8;
  if (part == "prepare") return use.keys * kKey;
  if (part == "forward") return use.keys * row + vectors;
  if (part == "update") return vectors + use.rows * 2 * (row + state_bytes_of_row(spec));
  return 0;
}

}  // namespace hctr
