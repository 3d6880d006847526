// Deltas of tables through a topic of Kafka: a producer for any trainer, a source for any server.
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
  std::string brokers;  ///< "host:port", several with commas
  std::string topic;
  int64_t message_bytes = 256 << 10;        ///< of a producer: the most bytes of a message, 4 KiB to 16 MiB
  int64_t queue_bytes = int64_t{32} << 20;  ///< that wait for the broker, or for the reader of a source
  int64_t held_bytes = int64_t{1} << 30;    ///< of a source: of deltas that are not whole, or whose base is missing
  std::string group{};                      ///< of a source: gets offsets too, so that tools of Kafka show its lag
  std::map<std::string, std::string> librdkafka{};  ///< other settings of the client, such as security.protocol
};

/// What a delta says of itself.
struct StreamedAbout {
  std::string run{};      ///< the id of the training run
  int64_t iteration = 0;  ///< of the rows after it
  int64_t base = -1;      ///< the iteration that it builds on; -1: it is the whole model
  double written = 0;     ///< seconds since 1970
  struct Table {
    std::string name;
    int64_t dim = 0;
    bool by_slot = false;  ///< rows belong to slot and key
    int64_t rows = -1;     ///< of the whole table after it; -1: not said
  };
  std::vector<Table> tables{};
};

struct StreamedDelta {
  StreamedAbout about{};
  struct Rows {
    std::vector<int32_t> slots{}, removed_slots{};  ///< empty where rows belong to keys alone
    std::vector<int64_t> keys{}, removed{};
    std::vector<float> rows{};  ///< [keys, dim]
  };
  std::vector<Rows> tables{};
  std::vector<std::pair<std::string, std::string>> files{};  ///< names and bytes: the dense part
};

/// Publishes deltas, each between begin() and end(). One thread at a time. Errors of all members: Error(io) where the
/// broker has not taken messages in time: the delta is given up, consumers never show any of it, and the next begin()
/// starts anew; Error(usage).
class HCTR_API DeltaProducer {
 public:
  /// Does not wait for a broker. Errors: Error(io) where there is no librdkafka, naming how to get it; Error(config).
  explicit DeltaProducer(StreamOptions);
  ~DeltaProducer();
  DeltaProducer(const DeltaProducer&) = delete;
  DeltaProducer& operator=(const DeltaProducer&) = delete;

  /// How long each of the calls below waits for the broker at most, once the queue is full. Default: 30 s.
  void wait_at_most(double seconds);
  /// Any thread: calls that wait for the broker give the delta up, now and later.
  void stop();
  void begin(const StreamedAbout&);
  /// Changed and new rows. `slots`: of a table whose rows belong to slot and key. `rows`: [keys, dim].
  void rows(size_t table, std::span<const int64_t> keys, std::span<const float> rows,
            std::span<const int32_t> slots = {});
  void removed(size_t table, std::span<const int64_t> keys, std::span<const int32_t> slots = {});
  void file(std::string_view name, std::string_view bytes);
  /// Returns when the broker has every message of the delta.
  void end();

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

struct StreamStatistics {
  int64_t deltas = 0, messages = 0, bytes = 0;
  int64_t doubled = 0, damaged = 0;  ///< messages that were dropped
  int64_t missing = 0;               ///< messages whose number in their stream was passed over, so far
  int64_t given_up = 0;              ///< deltas of which messages are missing, or that build on nothing here
  int64_t held = 0;                  ///< deltas that wait for messages, or for the delta before them
  int64_t behind = -1;               ///< messages in the topic that are not read yet; -1: not known
  std::string trouble{};             ///< what the client has last reported of its brokers
};

/// Gives each delta of a topic once, whole, in order. One thread at a time.
class HCTR_API DeltaSource {
 public:
  /// `position`: as position() gave it; empty: from the first message there is. `run`: other runs are skipped; empty:
  /// none is. `iteration`: that the tables are of; -1: not known. Errors: Error(io) where there is no librdkafka;
  /// Error(config); Error(data) for a position that is none.
  DeltaSource(StreamOptions, std::string_view position, std::string run, int64_t iteration);
  ~DeltaSource();
  DeltaSource(const DeltaSource&) = delete;
  DeltaSource& operator=(const DeltaSource&) = delete;

  /// The next delta that builds on the iteration there is, or a whole model that is newer; null: nothing within
  /// `seconds`. A broker that is away is no error.
  std::shared_ptr<const StreamedDelta> next(double seconds);
  /// The delta that next() gave is applied: the next one builds on it. Without this call next() gives it again.
  void taken();
  /// To store with the tables, in the same commit: where a source goes on that has taken the delta of next().
  std::string position() const;
  /// The same after position() is stored: tells the group of the options.
  void stored();
  /// The tables are of this iteration by other means, such as files.
  void skip_to(int64_t iteration);
  /// Whether all messages that were in the topic when this was first asked are read. Errors: Error(io).
  bool caught_up(double seconds);
  StreamStatistics statistics() const;

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
