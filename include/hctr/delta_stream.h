// Publishes deltas of embedding tables to a Kafka topic, and reads them back: `DeltaProducer` and `DeltaSource`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hctr/export.h"

namespace hctr {

struct StreamOptions {
  std::string brokers;  ///< comma-separated "host:port" addresses
  std::string topic;
  int64_t message_bytes = 256 << 10;  ///< producer: maximum size of a message, 4 KiB to 16 MiB
  /// maximum bytes in the client's queue: messages that are not yet sent (producer) or not yet read (source)
  int64_t queue_bytes = int64_t{32} << 20;
  /// source: maximum bytes of buffered deltas; a delta is buffered while it is incomplete or its base is missing
  int64_t held_bytes = int64_t{1} << 30;
  /// source: consumer group to which stored() commits offsets, so that tools can show the lag
  std::string group{};
  std::map<std::string, std::string> librdkafka{};  ///< further librdkafka settings, such as security.protocol
};

/// The metadata of a delta.
struct StreamedAbout {
  std::string run{};      ///< the id of the training run
  int64_t iteration = 0;  ///< iteration of the model after this delta
  int64_t base = -1;      ///< iteration that this delta builds on; -1: the delta is a whole model
  double written = 0;     ///< time of publication, seconds since 1970
  struct Table {
    std::string name;
    int64_t dim = 0;
    bool by_slot = false;  ///< whether rows belong to (slot, key) pairs instead of keys
    int64_t rows = -1;     ///< number of rows of the whole table after this delta; -1: unknown
  };
  std::vector<Table> tables{};
};

struct StreamedDelta {
  StreamedAbout about{};
  struct Rows {
    std::vector<int32_t> slots{}, removed_slots{};  ///< for tables with `by_slot`; otherwise empty
    std::vector<int64_t> keys{}, removed{};
    std::vector<float> rows{};  ///< [keys, dim]
  };
  std::vector<Rows> tables{};
  std::vector<std::pair<std::string, std::string>> files{};  ///< the files of the dense part: names and contents
};

/// Publishes deltas, each between begin() and end(). Not thread-safe, except for stop(). Every member can throw
/// Error(usage), or Error(io) if the broker does not accept messages in time. After Error(io) the delta is abandoned,
/// consumers never see any part of that delta, and the next begin() starts a new delta.
class HCTR_API DeltaProducer {
 public:
  /// Does not wait for a broker. Errors: Error(io) with install instructions if librdkafka is missing; Error(config).
  explicit DeltaProducer(StreamOptions);
  ~DeltaProducer();
  DeltaProducer(const DeltaProducer&) = delete;
  DeltaProducer& operator=(const DeltaProducer&) = delete;

  /// Sets the timeout of calls that wait: begin() waits for the topic's partitions, end() waits for the broker's
  /// acknowledgments, and every call that queues messages waits for free space in the queue. Default: 30 s.
  void wait_at_most(double seconds);
  /// Makes a call that is waiting for the broker, and every later call that would wait, abandon the delta. Any thread
  /// may call stop().
  void stop();
  void begin(const StreamedAbout&);
  /// Adds changed and new rows, [keys, dim]. `slots` [keys] is required for tables with `by_slot`, and must be empty
  /// for other tables. Errors: also Error(data) for a row that is not finite.
  void rows(size_t table, std::span<const int64_t> keys, std::span<const float> rows,
            std::span<const int32_t> slots = {});
  void removed(size_t table, std::span<const int64_t> keys, std::span<const int32_t> slots = {});
  void file(std::string_view name, std::string_view bytes);
  /// Returns when the broker has acknowledged every message of the delta.
  void end();

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

struct StreamStatistics {
  int64_t deltas = 0, messages = 0, bytes = 0;
  int64_t doubled = 0, damaged = 0;  ///< dropped messages: duplicates (`doubled`) and invalid messages (`damaged`)
  /// messages that did not arrive, found by gaps in the sequence numbers (HPS: in the Kafka offsets)
  int64_t missing = 0;
  /// dropped deltas: incomplete, or built on an iteration that the tables do not have
  int64_t given_up = 0;
  int64_t held = 0;       ///< buffered deltas: incomplete, or waiting for their base
  int64_t behind = -1;    ///< unread messages in the topic; -1: unknown
  std::string trouble{};  ///< the last invalid message or, if there was none, the client's last error
};

/// Returns each delta of a topic exactly once, complete and in order. Not thread-safe.
class HCTR_API DeltaSource {
 public:
  /// `position`: a result of position(); empty: the topic's first message. `run`: deltas of other runs are skipped;
  /// empty: accepts every run. `iteration`: the iteration of the caller's tables; -1: unknown. Errors: Error(io) if
  /// librdkafka is missing; Error(config); Error(data) for an invalid position.
  DeltaSource(StreamOptions, std::string_view position, std::string run, int64_t iteration);
  ~DeltaSource();
  DeltaSource(const DeltaSource&) = delete;
  DeltaSource& operator=(const DeltaSource&) = delete;

  /// Waits for the next delta that builds on the current iteration, or for a newer whole model, and returns it. Null:
  /// no such delta arrived within `seconds`. An unreachable broker is not an error.
  std::shared_ptr<const StreamedDelta> next(double seconds);
  /// Confirms that the caller has applied the last delta of next(). Until then, next() returns the same delta again.
  void taken();
  /// The position to resume from after the last delta of next(). Store this text in the same commit as the delta's
  /// rows.
  std::string position() const;
  /// Commits position() to the consumer group of the options, if they name one. Call this after you have stored the
  /// position.
  void stored();
  /// Sets the iteration of the caller's tables after the caller has updated them by other means, such as files.
  void skip_to(int64_t iteration);
  /// Returns whether all messages that the topic had at the first call of caught_up() have been read. Errors: Error(io)
  /// if the broker does not answer within `seconds`.
  bool caught_up(double seconds);
  StreamStatistics statistics() const;

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
