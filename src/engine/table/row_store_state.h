// A row store in checkpoints. For all calls: nothing is queued.
#pragma once

#include "engine/table/row_store.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {

/// Saves every row that has been assigned, in the order of row numbers; of an increment, the rows that have changed
/// since its base, or have other numbers than there, unless changes are not marked. A whole one is the next base.
void save_rows(RowStore&, StateWriter&);
/// Takes the rows of a store of the same spec, with their numbers, and the base of its increments. The store has no
/// rows of its own yet, but for those that exist from the start. Errors: those of StateReader; Error(device) when
/// memory is short.
void load_rows(RowStore&, const StateReader&);
/// Takes the shared row alone.
void load_shared_row(RowStore&, const StateReader&);

}  // namespace hctr
