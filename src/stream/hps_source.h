// Rows of tables from the topics of HugeCTR's Hierarchical Parameter Server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/delta_stream.h"
#include "stream/topic_reader.h"

namespace hctr {

/// Reads rows, in the order of each partition. The HPS format has no deltas and no removed keys.
class HpsSource {
 public:
  struct Table {
    std::string name;
    int64_t dim = 0;
  };
  struct Rows {
    std::vector<int64_t> keys{};
    std::vector<float> rows{};
  };
  /// `position`: a result of position(). `model`: the model name in the topics' names.
  HpsSource(const StreamOptions&, std::string_view model, std::vector<Table> tables, int key_bytes,
            std::string_view position);
  /// Waits up to `seconds` for a message. Returns false if none arrives. Otherwise reads all messages that have
  /// arrived, but stops after the message with which the rows reach kMostPairs. One Rows per table.
  bool next(double seconds, std::vector<Rows>&);
  /// The position after the last message whose rows next() has returned.
  std::string position() const { return offsets_text(reader_.offsets(), reader_.topics()); }
  void stored();
  bool caught_up(double seconds) { return reader_.caught_up(seconds); }
  StreamStatistics statistics() const;

  static constexpr size_t kMostPairs = 8192;

 private:
  bool has_group_;
  std::vector<Table> tables_;
  int key_bytes_;
  TopicReader reader_;
  StreamStatistics statistics_;
};

}  // namespace hctr
