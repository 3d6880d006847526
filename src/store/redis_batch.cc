#include "store/redis_batch.h"

#include <charconv>

namespace hctr {

RedisSink no_reply() {
  return {nullptr, [](void*, int32_t, int64_t, const char*, int64_t) {}, [](void*, int32_t, int64_t, int64_t) {}};
}

RedisSink number_reply(int64_t* number) {
  return {number, [](void*, int32_t, int64_t, const char*, int64_t) {},
          [](void* self, int32_t, int64_t, int64_t value) { *static_cast<int64_t*>(self) = value; }};
}

void RedisBatch::size_line(char kind, size_t size) {
  char text[24];
  char* const end = std::to_chars(text, text + sizeof text, size).ptr;
  bytes_ += kind;
  bytes_.append(text, end);
  bytes_ += "\r\n";
}

void RedisBatch::word(std::string_view text) {
  size_line('$', text.size());
  bytes_ += text;
  bytes_ += "\r\n";
}

void RedisBatch::begin(std::string_view name, const std::string& key, size_t words, bool reads, RedisSink sink) {
  begins_.push_back(bytes_.size());
  size_line('*', words + 2);
  word(name);
  word(key);
  keys_.push_back(bytes_.size() - key.size() - 2);
  commands_.push_back({.bytes = nullptr,
                       .size = 0,
                       .key = nullptr,
                       .key_size = static_cast<int64_t>(key.size()),
                       .reads = reads,
                       .sink = sink,
                       .done = false});
}

const char* RedisBatch::run(RedisClient& client, bool waits) {
  if (commands_.empty()) return nullptr;
  for (size_t c = 0; c < commands_.size(); ++c) {
    const size_t end = c + 1 < commands_.size() ? begins_[c + 1] : bytes_.size();
    commands_[c].bytes = bytes_.data() + begins_[c];
    commands_[c].size = static_cast<int64_t>(end - begins_[c]);
    commands_[c].key = bytes_.data() + keys_[c];
  }
  return client.run(commands_.data(), static_cast<int64_t>(commands_.size()), waits);
}

}  // namespace hctr
