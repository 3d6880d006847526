#include "plugins/redis/reply_reader.h"

#include <stdexcept>

namespace hctr {
namespace {

/// Callbacks through which hiredis creates objects. A RedisReply gets nested elements; a sink receives values directly.
int32_t depth_of(const redisReadTask* task) {
  int32_t depth = 0;
  for (const redisReadTask* above = task->parent; above; above = above->parent) ++depth;
  return depth;
}

ReplyTarget& target_of(const redisReadTask* task) { return *static_cast<ReplyTarget*>(task->privdata); }

RedisReply* place_of(const redisReadTask* task) {
  thread_local RedisReply nobodys;
  if (!task->parent) return target_of(task).reply ? target_of(task).reply : &nobodys;
  auto* const parent = static_cast<RedisReply*>(task->parent->obj);
  parent->elements.resize(static_cast<size_t>(task->idx) + 1);
  return &parent->elements.back();
}

void* no_object() {
  static const char object = 0;
  return const_cast<char*>(&object);
}

void* make_text(const redisReadTask* task, char* bytes, size_t count) {
  ReplyTarget& target = target_of(task);
  if (task->type == REDIS_REPLY_ERROR) target.error.assign(bytes, count);
  if (target.sink) {
    if (task->type != REDIS_REPLY_ERROR)
      target.sink->text(target.sink->self, depth_of(task), task->idx < 0 ? 0 : task->idx, bytes,
                        static_cast<int64_t>(count));
    return no_object();
  }
  RedisReply* const place = place_of(task);
  place->text.assign(bytes, count);
  return place;
}

void* make_array_of(const redisReadTask* task) {
  if (target_of(task).sink) return no_object();
  RedisReply* const place = place_of(task);
  place->elements.clear();
  place->elements.reserve(static_cast<size_t>(task->elements > 0 ? task->elements : 0));
  return place;
}

void* make_integer(const redisReadTask* task, long long value) {
  ReplyTarget& target = target_of(task);
  if (target.sink) {
    target.sink->integer(target.sink->self, depth_of(task), task->idx < 0 ? 0 : task->idx, value);
    return no_object();
  }
  RedisReply* const place = place_of(task);
  place->integer = value;
  return place;
}

void* make_nil(const redisReadTask* task) {
  ReplyTarget& target = target_of(task);
  if (!target.sink) return place_of(task);
  target.sink->text(target.sink->self, depth_of(task), task->idx < 0 ? 0 : task->idx, nullptr, 0);
  return no_object();
}

redisReplyObjectFunctions reply_functions() {
  redisReplyObjectFunctions functions{};
  functions.createString = make_text;
  functions.createArray = [](const redisReadTask* task, auto /*count: int, or size_t from 1.0 on*/) {
    return make_array_of(task);
  };
  functions.createInteger = make_integer;
  functions.createNil = make_nil;
  functions.freeObject = [](void*) {};
  return functions;
}

}  // namespace

ReplyReader::ReplyReader() {
  static const redisReplyObjectFunctions functions = reply_functions();
  // hiredis takes a pointer to non-const, but only calls these functions.
  reader_.reset(redisReaderCreateWithFunctions(const_cast<redisReplyObjectFunctions*>(&functions)));
  if (!reader_) throw std::runtime_error("out of memory for replies");
  reader_->maxbuf = 0;  // keep the buffer: replies are large
}

void ReplyReader::feed(const char* bytes, size_t count) {
  if (redisReaderFeed(reader_.get(), bytes, count) != REDIS_OK) throw std::runtime_error(reader_->errstr);
}

bool ReplyReader::next(ReplyTarget& target) {
  reader_->privdata = &target;
  void* object = nullptr;
  if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) throw std::runtime_error(reader_->errstr);
  return object != nullptr;
}

}  // namespace hctr
