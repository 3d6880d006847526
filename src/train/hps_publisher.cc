#include "train/hps_publisher.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "stream/hps_message.h"
#include "stream/topic_reader.h"

namespace hctr {
namespace {

constexpr double kLongestWaitOfHps = 20;  // maximum seconds to wait for the broker to accept a message

}  // namespace

HpsPublisher::HpsPublisher(const PublishSection& section)
    : section_(section), writer_(open_kafka_writer(section.options())) {}

void HpsPublisher::give_up(const std::string& why) {
  const std::string trouble = writer_ ? writer_->trouble() : "";
  writer_.reset();  // a retry sends all rows again, which does not change the result
  throw Error(Kind::io, cat("brokers '", section_.brokers, "': ", why, trouble.empty() ? "" : " (", trouble,
                            trouble.empty() ? "" : ")"));
}

int32_t HpsPublisher::partitions_of(const std::string& topic) {
  if (!writer_) writer_ = open_kafka_writer(section_.options());
  int32_t& count = partitions_[topic];
  if (count == 0)
    if (const char* const problem = writer_->partitions(topic.c_str(), 1000, count))
      give_up(cat("topic '", topic, "': ", problem));
  return count;
}

void HpsPublisher::send(const std::string& topic, int32_t partition, const std::string& message) {
  const auto end = after_seconds(kLongestWaitOfHps);
  for (bool full = true; full;) {
    const char* const problem =
        writer_->send(topic.c_str(), partition, message.data(), static_cast<int64_t>(message.size()), full);
    if (problem) give_up(problem);
    if (!full) return;
    writer_->serve(50);
    if (*writer_->failure()) give_up(writer_->failure());
    if (stopped_ || ms_until(end) == 0) give_up("no broker has accepted a message");
  }
}

void HpsPublisher::rows(const StreamedAbout::Table& table, std::span<const int64_t> keys, std::span<const float> rows) {
  if (table.by_slot)
    throw Error(Kind::config, cat("table '", table.name,
                                  "' identifies rows by slot and key, which messages of HugeCTR's parameter server "
                                  "cannot express"));
  const std::string topic = hps_topic(section_.hps_model, table.name);
  const int32_t partitions = partitions_of(topic);
  const auto dim = static_cast<size_t>(table.dim);
  struct Group {
    std::vector<int64_t> keys{};
    std::vector<float> rows{};
  };
  std::array<Group, kHpsKeyGroups> groups;
  const auto pair_bytes = static_cast<size_t>(section_.key_bytes) + dim * sizeof(float);
  const size_t most = std::max<size_t>((static_cast<size_t>(section_.message_bytes) - 8) / pair_bytes, 1);
  const auto send_group = [&](int32_t number) {
    Group& group = groups[static_cast<size_t>(number)];
    if (group.keys.empty()) return;
    send(topic, number % partitions,
         write_hps_message(group.keys, group.rows, table.dim, static_cast<int>(section_.key_bytes)));
    group = {};
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    const int32_t number = hps_key_group(keys[i]);
    Group& group = groups[static_cast<size_t>(number)];
    group.keys.push_back(keys[i]);
    const auto row = rows.subspan(i * dim, dim);
    group.rows.insert(group.rows.end(), row.begin(), row.end());
    if (group.keys.size() == most) send_group(number);
  }
  for (int32_t number = 0; number < kHpsKeyGroups; ++number) send_group(number);
}

void HpsPublisher::flush() {
  if (!writer_) return;
  const auto end = after_seconds(kLongestWaitOfHps);
  while (const int64_t waiting = writer_->serve(50)) {
    if (*writer_->failure()) give_up(writer_->failure());
    if (stopped_ || ms_until(end) == 0) give_up(cat("the broker has not confirmed ", waiting, " messages"));
  }
  if (*writer_->failure()) give_up(writer_->failure());
}

}  // namespace hctr
