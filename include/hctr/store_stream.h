// A store that follows a stream of updates through Kafka.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hctr/delta_stream.h"
#include "hctr/export.h"

namespace hctr {

class Store;

struct StoreStreamOptions {
  StreamOptions stream;
  /// A snapshot_prefix: where a delta is missing in the stream, those of files are applied. Empty: none are.
  std::string updates{};
  /// Topics and messages of HugeCTR's Hierarchical Parameter Server, one for each table of the model.
  bool hps = false;
  int key_bytes = 8;  ///< of hps: 8 or 4
};

struct StoreStreamStatistics {
  StreamStatistics stream{};
  int64_t applied = 0, rows = 0;  ///< deltas, or batches of hps; changed and removed rows
  double age_seconds = -1;        ///< since the newest applied delta was written; -1: none was
  std::string error{};            ///< what has ended the thread
};

/// Applies updates to the active version of a model: each once, whole, in order. Where it goes on is stored in each
/// commit of the store. The store outlives it. One thread at a time calls it, but for statistics().
class HCTR_API StoreStream {
 public:
  /// Errors: those of DeltaSource.
  StoreStream(Store&, std::string model, StoreStreamOptions);
  ~StoreStream();
  StoreStream(const StoreStream&) = delete;
  StoreStream& operator=(const StoreStream&) = delete;

  /// Applies what comes within `seconds`. Returns how many deltas. Errors: Error(data) where one does not fit: nothing
  /// of it is applied; Error(io).
  int64_t apply(double seconds);
  /// Applies all that were in the topics when it was called. Errors: also Error(io) where the broker does not answer
  /// within `seconds`.
  int64_t catch_up(double seconds);
  /// A thread that applies what comes, until stop() or an error.
  void start();
  void stop();
  StoreStreamStatistics statistics() const;

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
