// Initializes table rows with pretrained vectors from files.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.h"
#include "core/base/log.h"

namespace hctr {

class Embedding;

/// An element of the solver's "pretrained": the files with vectors for one table.
struct Pretrained {
  std::string table;          ///< top of the table's embedding layer
  std::string file;           ///< a Parquet file with columns "key" and "vector"
  std::string keys, vectors;  ///< two .npy files, used if `file` is empty
  int64_t slot = 0;           ///< if slot and key identify a row: the slot of all keys in the file
};
Schema<Pretrained> pretrained_schema();

/// Writes the pretrained vectors into the rows of their keys; creates missing rows. Every rank reads the files and uses
/// only the keys that it owns. Logs the number of rows. Returns whether any key exceeds 4 bytes. Errors: Error(io);
/// Error(data) naming file and position.
bool load_pretrained(const Pretrained&, Embedding&, const Log&);

}  // namespace hctr
