#include "stream/hps_source.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "stream/hps_message.h"

namespace hctr {
namespace {

std::vector<std::string> topics_of_tables(std::string_view model, const std::vector<HpsSource::Table>& tables) {
  std::vector<std::string> topics;
  for (const HpsSource::Table& table : tables) topics.push_back(hps_topic(model, table.name));
  return topics;
}

}  // namespace

HpsSource::HpsSource(const StreamOptions& options, std::string_view model, std::vector<Table> tables, int key_bytes,
                     std::string_view position)
    : has_group_(!options.group.empty()),
      tables_(std::move(tables)),
      key_bytes_(key_bytes),
      reader_(options, topics_of_tables(model, tables_),
              read_offsets_text(position, topics_of_tables(model, tables_))) {}

bool HpsSource::next(double seconds, std::vector<Rows>& rows) {
  rows.assign(tables_.size(), {});
  const auto end = after_seconds(seconds);
  size_t pairs = 0;
  bool any = false;
  for (bool first = true; pairs < kMostPairs; first = false) {
    // after the first message, read only messages that have already arrived
    const int64_t left = any ? 0 : ms_until(end);
    if (left == 0 && !any && !first) return false;
    const KafkaMessage* const message = reader_.read(std::min<int64_t>(left, 100));
    if (!message && any) break;
    if (!message) continue;
    any = true;
    ++statistics_.messages;
    statistics_.bytes += message->size;
    const auto table = static_cast<size_t>(message->topic);
    Rows& to = rows[table];
    const size_t before = to.keys.size();
    const std::string why =
        message->has_key || !message->has_value
            ? "a message must have content and no key"
            : read_hps_message({static_cast<const char*>(message->bytes), static_cast<size_t>(message->size)},
                               tables_[table].dim, key_bytes_, to.keys, to.rows);
    if (!why.empty()) {
      ++statistics_.damaged;
      statistics_.trouble = cat("topic '", reader_.topics()[table], "', partition ", message->partition, ", offset ",
                                message->offset, ": ", why);
    }
    pairs += to.keys.size() - before;
  }
  return any;
}

void HpsSource::stored() {
  if (has_group_) reader_.note(reader_.offsets());
}

StreamStatistics HpsSource::statistics() const {
  StreamStatistics all = statistics_;
  if (all.trouble.empty()) all.trouble = reader_.trouble();
  all.missing = reader_.missing();
  all.behind = reader_.behind();
  return all;
}

}  // namespace hctr
