// Vectors that were trained elsewhere, as the first values of a table's rows.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.h"
#include "core/base/log.h"

namespace hctr {

class Embedding;

/// An element of "pretrained" in the solver: the vectors of one table.
struct Pretrained {
  std::string table;          ///< its top
  std::string file;           ///< Parquet, with columns "key" and "vector"
  std::string keys, vectors;  ///< npy, or else
  int64_t slot = 0;           ///< the slot of the keys, if rows belong to slot and key
};
Schema<Pretrained> pretrained_schema();

/// Sets the vectors of the rows of these keys, and creates missing rows. Every rank reads the files and keeps its own
/// rows. Logs their number. Returns whether a key does not fit 4 bytes. Errors: Error(io); Error(data) naming file and
/// place.
bool load_pretrained(const Pretrained&, Embedding&, const Log&);

}  // namespace hctr
