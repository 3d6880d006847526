// Reader options and batch tensors, used in training and evaluation.
#pragma once

#include "data/reader/reader.h"
#include "model/model.h"
#include "train/batch_ring.h"

namespace hctr {

/// Options of a single rank that reads the set once.
ReaderOptions reader_options(const Config&, int64_t batch);
/// Options of this rank for batches of `batch` samples over all ranks.
ReaderOptions reader_options(const Config&, const Communicator&, int64_t batch, bool repeat);

/// The tensors of one buffer.
BatchTensors batch_tensors(const BatchRing&, int buffer, size_t sparse_inputs);

}  // namespace hctr
