// Saves and loads the rows of a store in checkpoints. No work may be queued.
#pragma once

#include "engine/table/row_store.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {

/// Saves all assigned rows, ordered by row number. An increment contains only the rows that have changed since its
/// base, or that have another row number than in the base. If changes are not marked, an increment contains all rows. A
/// full checkpoint becomes the base of later increments.
void save_rows(RowStore&, StateWriter&);
/// Loads the rows of a saved store with the same spec. Rows keep their row numbers. Also loads the base of the store's
/// increments. The store must not have rows, except rows that exist from the start. Errors: those of StateReader;
/// Error(device) if memory runs out.
void load_rows(RowStore&, const StateReader&);
/// Loads only the shared row.
void load_shared_row(RowStore&, const StateReader&);

}  // namespace hctr
