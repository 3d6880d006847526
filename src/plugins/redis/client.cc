#include "plugins/redis/client.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "plugins/redis/client_run.h"

namespace hctr {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLeftAlone{200}, kBetweenRefreshes{20};
constexpr int kMostDoublings = 5;  // the longest pause is 6.4 s

const char* kept_text(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace

RedisClientOf::RedisClientOf(const RedisSettings& from) : settings_(from) {
  const char** const members[] = {&settings_.addresses,   &settings_.user, &settings_.password,   &settings_.ca,
                                  &settings_.certificate, &settings_.key,  &settings_.server_name};
  for (size_t i = 0; i < std::size(members); ++i) {
    texts_[i] = *members[i] ? *members[i] : "";
    *members[i] = texts_[i].c_str();
  }
  for (std::string_view left = texts_[0]; !left.empty();) {
    const size_t comma = std::min(left.find_first_of(",;"), left.size());
    first_.push_back(redis_address(left.substr(0, comma)));
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  if (first_.empty()) throw std::runtime_error("expected at least one server address");
  if (settings_.tls) tls_ = tls_context(settings_);
}

const char* RedisClientOf::open(const RedisSettings& settings, RedisClient** client) try {
  *client = new RedisClientOf(settings);
  return nullptr;
} catch (const std::exception& error) {
  return kept_text(error.what());
}

RedisCounts RedisClientOf::counts() const { return {connected_, redirected_, refreshes_, broken_}; }

std::unique_ptr<RedisLane> RedisClientOf::take_lane(RedisClock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const auto is_free = [this] { return !lanes_.empty() || lanes_made_ < settings_.connections; };
  if (!lane_is_free_.wait_until(lock, deadline, is_free))
    throw std::runtime_error("all " + std::to_string(settings_.connections) + " connections are busy");
  if (lanes_.empty()) {
    ++lanes_made_;
    return std::make_unique<RedisLane>();
  }
  std::unique_ptr<RedisLane> lane = std::move(lanes_.back());
  lanes_.pop_back();
  return lane;
}

void RedisClientOf::give_lane(std::unique_ptr<RedisLane> lane) {
  // Close connections with missing replies: a late reply would be mistaken for the reply to the next command.
  for (RedisLane::Connections* all : {&lane->masters, &lane->replicas})
    std::erase_if(*all, [](const auto& one) { return one.second->waits(); });
  const std::lock_guard lock(mutex_);
  lanes_.push_back(std::move(lane));
  lane_is_free_.notify_one();
}

std::unique_ptr<RedisConnection> RedisClientOf::connect(const RedisAddress& to, bool replica,
                                                        RedisClock::time_point deadline) {
  const auto soon = RedisClock::now() + milliseconds(std::max(1, settings_.timeout_ms / 2));
  auto made = std::make_unique<RedisConnection>(to, settings_, tls_.get(), replica, std::min(soon, deadline));
  ++connected_;
  return made;
}

SlotMap RedisClientOf::map() const {
  const std::lock_guard lock(mutex_);
  return map_;
}

void RedisClientOf::moved(int slot, const RedisAddress& to) {
  const std::lock_guard lock(mutex_);
  map_.move(slot, to);
}

std::string RedisClientOf::why_down(const RedisAddress& address) const {
  if (!any_down_) return "";
  const std::lock_guard lock(mutex_);
  const auto found = down_.find(address);
  return found != down_.end() && RedisClock::now() < found->second.until ? found->second.why : "";
}

void RedisClientOf::set_down(const RedisAddress& address, const std::string& why) {
  const std::lock_guard lock(mutex_);
  Down& of = down_[address];
  of.until = RedisClock::now() + kLeftAlone * (1 << std::min(of.times++, kMostDoublings));
  of.why = why;
  any_down_ = true;
}

void RedisClientOf::set_up(const RedisAddress& address) {
  if (!any_down_) return;
  const std::lock_guard lock(mutex_);
  down_.erase(address);
  any_down_ = !down_.empty();
}

void RedisClientOf::refresh(RedisClock::time_point deadline) {
  std::vector<RedisAddress> nodes;
  {
    const std::lock_guard lock(mutex_);
    if (RedisClock::now() < refreshed_ + kBetweenRefreshes && !map_.masters.empty()) return;
    refreshed_ = RedisClock::now();
    nodes = map_.masters;
    for (const auto& of_master : map_.replicas) nodes.insert(nodes.end(), of_master.begin(), of_master.end());
  }
  nodes.insert(nodes.end(), first_.begin(), first_.end());
  std::string problem;
  bool refused = false;
  std::set<RedisAddress> asked;
  for (const RedisAddress& node : nodes) {
    if (!asked.insert(node).second) continue;
    if (const std::string why = why_down(node); !why.empty()) {
      if (problem.empty()) problem = why;
      continue;
    }
    try {
      std::string error;
      const auto connection = connect(node, false, deadline);
      const RedisReply reply = connection->ask(redis_command({"CLUSTER", "SLOTS"}), deadline, &error);
      if (!error.empty() && error.find("cluster support disabled") == std::string::npos)
        throw std::runtime_error(node.text() + ": CLUSTER SLOTS: " + error);
      SlotMap next = error.empty() ? SlotMap::of_reply(reply, node) : SlotMap::alone(node);
      ++refreshes_;
      const std::lock_guard lock(mutex_);
      map_ = std::move(next);
      return;
    } catch (const std::exception& failure) {
      problem = failure.what();
      refused = dynamic_cast<const RedisRefused*>(&failure) != nullptr;
      set_down(node, problem);
    }
  }
  if (refused) throw RedisRefused(problem);
  throw std::runtime_error(problem);
}

const char* RedisClientOf::run(RedisCommand* commands, int64_t count, bool waits) try {
  const auto deadline = RedisClock::now() + milliseconds(settings_.timeout_ms);
  for (int64_t i = 0; i < count; ++i) commands[i].done = false;
  RedisRun run(*this, commands, count, waits, deadline);
  const std::string problem = run.finish();
  return problem.empty() ? nullptr : kept_text(problem);
} catch (const std::exception& error) {
  return kept_text(error.what());
}

}  // namespace hctr

extern "C" __attribute__((visibility("default"))) const hctr::RedisPlugin* hctr_redis_plugin() {
  static const std::string about = "hiredis " + std::to_string(HIREDIS_MAJOR) + "." + std::to_string(HIREDIS_MINOR) +
                                   ", " + OpenSSL_version(OPENSSL_VERSION);
  static const hctr::RedisPlugin plugin = {
      .version = hctr::kRedisPlugin, .about = about.c_str(), .open = hctr::RedisClientOf::open};
  return &plugin;
}
