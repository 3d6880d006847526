// Reader options and batch tensors, used in training and evaluation.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "formats/reader/reader.h"
#include "net/model/replica.h"
#include "score/batch_ring.h"

namespace hctr {

/// Options of a single rank that reads the set once.
ReaderOptions reader_options(const Config&, int64_t batch);
/// Options of this rank for batches of `batch` samples over all ranks.
ReaderOptions reader_options(const Config&, const Communicator&, int64_t batch, bool repeat);

/// Waits for the next batch, or until `stop`, which may be null, is other than 0, or for so long.
enum class Waited { batch, stopped, limit };
Waited wait_for_batch(Reader&, const std::atomic<int>* stop,
                      std::chrono::milliseconds limit = std::chrono::milliseconds::max());
/// How long a rank waits for its data before it notifies the others that it is alive.
constexpr std::chrono::milliseconds kToWaitForData(1000);
/// For a reader whose batch was abandoned by a stop. If its threads still wait, for instance for a disk that does not
/// answer, they cannot be joined. They then keep the reader and the buffers they may write to, and the process ends
/// without them.
void leave_behind_if_stuck(std::unique_ptr<Reader>&, BatchRing&);

/// The tensors of one buffer.
BatchTensors batch_tensors(const BatchRing&, int buffer, size_t sparse_inputs);

}  // namespace hctr
