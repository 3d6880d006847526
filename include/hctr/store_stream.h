// Applies a Kafka stream of updates to a store.
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
  /// A snapshot_prefix. If the stream lacks a delta, deltas from these files are applied instead. Empty: no files.
  std::string updates{};
  /// Reads topics and messages of HugeCTR's Hierarchical Parameter Server (HPS), one topic per table of the model.
  bool hps = false;
  int key_bytes = 8;  ///< HPS: bytes per key, 8 or 4
};

struct StoreStreamStatistics {
  StreamStatistics stream{};
  int64_t applied = 0, rows = 0;  ///< applied: deltas, or batches of HPS messages; rows: changed and removed rows
  double age_seconds = -1;        ///< seconds since the newest applied delta was published; -1: none applied
  std::string error{};            ///< the error that ended the thread of start()
};

/// Applies updates to the active version of a model: each update once, completely, in order. Each commit of the store
/// also stores the position to resume from. The store must outlive the stream. Only statistics() is thread-safe.
class HCTR_API StoreStream {
 public:
  /// Errors: those of DeltaSource.
  StoreStream(Store&, std::string model, StoreStreamOptions);
  ~StoreStream();
  StoreStream(const StoreStream&) = delete;
  StoreStream& operator=(const StoreStream&) = delete;

  /// Applies updates that arrive within `seconds`. Returns the number of applied deltas. Errors: Error(data) if a delta
  /// does not match the model, in which case no part of that delta is applied; Error(io).
  int64_t apply(double seconds);
  /// Applies all updates that the topics have at the time of the call. Returns and throws as apply(), and Error(io) if
  /// the broker does not answer within `seconds`.
  int64_t catch_up(double seconds);
  /// Starts a thread that applies updates until stop() or an error.
  void start();
  void stop();
  StoreStreamStatistics statistics() const;

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
