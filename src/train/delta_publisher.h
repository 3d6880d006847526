// Publishes the deltas of a run to Kafka from their folders.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "config/sections/stream_section.h"
#include "core/base/log.h"
#include "formats/model/model_manifest.h"
#include "hctr/delta_stream.h"

namespace hctr {

class HpsPublisher;

/// A thread that sends each delta once its folder is complete. Training never waits for this thread. While no broker
/// answers, deltas remain in their folders, which are complete and checksummed. The thread sends them later; if the run
/// is resumed, the resumed run's thread does. <prefix>_published.json stores the iteration of the last sent delta.
class DeltaPublisher {
 public:
  /// Also queues deltas of `run` at the prefix, up to iteration `known`, that an earlier process has not sent. Errors:
  /// Error(io) without librdkafka; Error(config).
  DeltaPublisher(const PublishSection&, std::string prefix, std::string run, int64_t known, const Log&);
  /// Aborts the delta in progress.
  ~DeltaPublisher();
  DeltaPublisher(const DeltaPublisher&) = delete;
  DeltaPublisher& operator=(const DeltaPublisher&) = delete;

  void add_delta(const std::filesystem::path& folder, int64_t iteration);
  /// `dense`: the dense file of the full model.
  void add_whole(const std::filesystem::path& dense, int64_t iteration);
  /// Whether a delta could not be read, so that servers need a full model. Resets the flag.
  bool take_needs_whole();
  /// Waits up to `seconds` until all deltas are sent, and logs how many are not.
  void finish(double seconds);

 private:
  struct Item {
    std::filesystem::path path;
    int64_t iteration = 0;
    bool whole = false;
  };
  void add(Item);
  void add_left(int64_t known);
  void run();
  bool send(const Item&);
  void send_manifest(const ModelManifest&, bool whole);
  void write_note();

  PublishSection section_;
  std::string prefix_, run_;
  const Log log_;
  std::unique_ptr<DeltaProducer> producer_;
  std::unique_ptr<HpsPublisher> hps_;
  std::filesystem::path state_file_;
  int64_t published_ = -1;  // the iteration of the last sent delta

  std::mutex mutex_;
  std::condition_variable change_;
  std::deque<Item> items_;
  bool stopping_ = false, needs_whole_ = false, said_away_ = false;
  std::thread thread_;
};

}  // namespace hctr
