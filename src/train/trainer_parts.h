// What training and evaluation both do to get batches.
#pragma once

#include "data/reader/reader.h"
#include "model/model.h"
#include "train/batch_ring.h"

namespace hctr {

/// How somebody reads who is alone, to the end of the set.
ReaderOptions reader_options(const Config&, int64_t batch);
/// How this rank reads batches of `batch` samples (over all ranks).
ReaderOptions reader_options(const Config&, const Communicator&, int64_t batch, bool repeat);

/// The tensors of one slot.
BatchTensors batch_tensors(const BatchRing&, int slot, size_t sparse_inputs);

}  // namespace hctr
