// Assembles the messages of a topic into deltas, each delta once, complete and in order. Messages may be duplicated,
// late or lost.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hctr/delta_stream.h"
#include "stream/delta_message.h"

namespace hctr {

class DeltaAssembler {
 public:
  /// Parameters as in DeltaSource.
  DeltaAssembler(std::string run, int64_t iteration, int64_t held_bytes)
      : run_(std::move(run)), iteration_(iteration), most_held_(held_bytes) {}

  /// Adds a message that was read at an offset of a partition.
  void take(int32_t partition, int64_t offset, std::string_view message);
  /// The delta to apply next; null: no complete delta fits. Returns the same delta until taken().
  std::shared_ptr<const StreamedDelta> next();
  void taken();
  void skip_to(int64_t iteration);
  int64_t iteration() const { return iteration_; }

  /// For each partition, the lowest offset that is still needed after taken().
  std::map<int32_t, int64_t> offsets() const;
  /// Counts of messages and deltas; `behind` is not set, because only a Kafka client knows it.
  StreamStatistics statistics() const;

 private:
  using Id = std::pair<uint64_t, uint64_t>;  // number of the stream, number of the delta in the stream
  struct Held {
    std::map<uint32_t, std::string> messages{};  // by the message's index in the delta
    std::map<int32_t, int64_t> first_offsets{};
    StreamedAbout about{};
    bool has_begin = false;
    uint32_t total = 0, crc = 0;  // from the delta's end message
    int64_t bytes = 0, first_arrival = 0, last_arrival = 0;

    bool whole() const { return has_begin && total > 0 && messages.size() == total; }
  };
  struct Stream {
    uint64_t first = 0, last = 0, seen = 0;  // smallest and largest sequence number, and number of messages
    std::set<uint64_t> done{};               // numbers of finished deltas
    uint64_t done_before = 0;                // all deltas with smaller numbers are done too
  };
  bool is_done(Id) const;
  void set_done(Id);
  /// Whether the buffered delta `held` may still be needed once the delta `applied` is applied. `of`: the id of `held`;
  /// `id`: the id of `applied`.
  bool outlives(const Held&, Id of, const Held& applied, Id id) const;
  bool is_past(const StreamedAbout&) const;
  bool fits(const StreamedAbout&) const;
  std::map<Id, Held>::iterator drop(std::map<Id, Held>::iterator, bool counts);
  void shed(Id current);
  std::shared_ptr<const StreamedDelta> decode(const Held&) const;

  std::string run_;
  int64_t iteration_, most_held_;
  std::map<Id, Held> held_;
  std::map<uint64_t, Stream> streams_;
  std::map<int32_t, int64_t> read_to_;  // [partition] the offset after the last message
  int64_t held_bytes_ = 0, arrivals_ = 0;
  Id ready_id_{};
  std::shared_ptr<const StreamedDelta> ready_;
  StreamStatistics statistics_;
};

}  // namespace hctr
