#include "capi/stream_options.h"

#include <string>

#include "capi/call.h"
#include "core/base/expect.h"

namespace hctr::capi {

StreamOptions stream_options(const hctr_stream_options& from) {
  expect_given(from.brokers, "hctr_stream_options: brokers");
  StreamOptions to{.brokers = from.brokers, .topic = from.topic ? from.topic : ""};
  if (from.message_bytes != 0) to.message_bytes = from.message_bytes;
  if (from.queue_bytes != 0) to.queue_bytes = from.queue_bytes;
  if (from.held_bytes != 0) to.held_bytes = from.held_bytes;
  if (from.group) to.group = from.group;
  if (from.librdkafka_count > 0) expect_given(from.librdkafka, "hctr_stream_options: librdkafka");
  for (size_t i = 0; i < from.librdkafka_count; ++i) {
    expect_given(from.librdkafka[i], "hctr_stream_options: a setting of librdkafka");
    const std::string setting = from.librdkafka[i];
    const size_t equals = setting.find('=');
    if (equals == 0 || equals == setting.npos)
      throw Error(Kind::usage, cat("hctr_stream_options: librdkafka[", i, "] is '", setting, "', expected name=value"));
    to.librdkafka[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return to;
}

hctr_stream_statistics stream_statistics(const StreamStatistics& from) {
  return {sizeof(hctr_stream_statistics),
          from.deltas,
          from.messages,
          from.bytes,
          from.doubled,
          from.damaged,
          from.missing,
          from.given_up,
          from.held,
          from.behind};
}

}  // namespace hctr::capi
