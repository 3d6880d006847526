// Reader options and batch tensors, for training and evaluation.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "formats/reader/reader.h"
#include "net/model/replica.h"
#include "score/batch_ring.h"

namespace hctr {

/// Options for a single rank that reads the set once.
ReaderOptions reader_options(const Config&, int64_t batch);
/// Options for this rank; `batch`: batch size over all ranks.
ReaderOptions reader_options(const Config&, const Communicator&, int64_t batch, bool repeat);

/// Waits until the next batch is ready, `limit` has passed, or `*stop` is nonzero. `stop` may be null.
enum class Waited { batch, stopped, limit };
Waited wait_for_batch(Reader&, const std::atomic<int>* stop,
                      std::chrono::milliseconds limit = std::chrono::milliseconds::max());
/// Maximum time that a rank waits for data before it sends a heartbeat to the other ranks.
constexpr std::chrono::milliseconds kToWaitForData(1000);
/// Abandons a reader whose threads are blocked when training stops, for example on a disk that does not respond. Such
/// threads cannot be joined, so the reader and its buffers are leaked, and the process exits without joining the
/// threads. Does nothing if the reader is not blocked.
void leave_behind_if_stuck(std::unique_ptr<Reader>&, BatchRing&);

/// The tensors of one batch buffer.
BatchTensors batch_tensors(const BatchRing&, int buffer, size_t sparse_inputs);

}  // namespace hctr
