#include "plugins/redis/client_run.h"

#include <poll.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kPause{5};

bool starts_with_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return text.starts_with(word); });
}

/// The address in a redirection such as "MOVED 3999 127.0.0.1:6381". If the redirection names no host, the host is that
/// of the replying node.
RedisAddress address_of_redirection(const std::string& error, const RedisAddress& said_by) {
  const std::string text = error.substr(error.rfind(' ') + 1);
  return redis_address(text.starts_with(':') ? said_by.host + text : text);
}

}  // namespace

RedisRun::RedisRun(RedisClientOf& client, RedisCommand* commands, int64_t count, bool waits,
                   RedisClock::time_point deadline)
    : client_(client), waits_(waits), deadline_(deadline), lane_(client.take_lane(deadline)) {
  for (int64_t i = 0; i < count; ++i)
    pending_.push_back(
        {.command = commands + i, .slot = redis_slot({commands[i].key, static_cast<size_t>(commands[i].key_size)})});
  for (const RedisAddress& node : client.map().masters)
    if (client.is_down(node)) down_before_.insert(node);
}

RedisRun::~RedisRun() { client_.give_lane(std::move(lane_)); }

RedisConnection* RedisRun::connected(RedisLane::Connections& in, const RedisAddress& to, bool replica, Round& round) {
  if (round.failed.contains(to)) return nullptr;
  std::unique_ptr<RedisConnection>& connection = in[to];
  if (connection) return connection.get();
  std::string why = client_.why_down(to);
  if (why.empty()) {
    try {
      connection = client_.connect(to, replica, deadline_);
      return connection.get();
    } catch (const std::exception& error) {
      why = error.what();
      client_.set_down(to, why);
    }
  }
  round.failed[to] = why;
  in.erase(to);
  return nullptr;
}

RedisConnection* RedisRun::connection_for(Pending& one, const SlotMap& map, Round& round) {
  const RedisAddress* const master = map.master(one.slot);
  if (one.ask.port == 0 && !master) {
    problem_ = "no node serves slot " + std::to_string(one.slot);
    return nullptr;
  }
  one.sent_to = one.ask.port != 0 ? one.ask : *master;
  if (RedisConnection* const found = connected(lane_->masters, one.sent_to, false, round)) return found;
  problem_ = round.failed[one.sent_to];
  if (!client_.reads_replicas() || !one.command->reads || !master) return nullptr;
  const auto at = std::find(map.masters.begin(), map.masters.end(), *master) - map.masters.begin();
  for (const RedisAddress& replica : map.replicas[static_cast<size_t>(at)])
    if (RedisConnection* const found = connected(lane_->replicas, replica, true, round)) {
      one.sent_to = replica;
      return found;
    }
  return nullptr;
}

void RedisRun::send(Round& round) {
  static const std::string asking = redis_command({"ASKING"});
  const SlotMap map = client_.map();
  for (Pending& one : pending_) {
    one.target = {.sink = &one.command->sink};
    RedisConnection* const to = connection_for(one, map, round);
    if (!to) {
      round.refreshes = round.waits = true;
      one.ask = {};
      continue;
    }
    if (one.ask.port != 0) to->queue(asking.data(), asking.size(), asking_.emplace_back());
    to->queue(one.command->bytes, static_cast<size_t>(one.command->size), one.target);
    active_.insert(to);
  }
}

void RedisRun::drop(RedisConnection* connection, Round& round, const std::string& why) {
  active_.erase(connection);
  client_.count_broken_connection();
  problem_ = why;
  round.refreshes = round.waits = true;
  for (RedisLane::Connections* all : {&lane_->masters, &lane_->replicas})
    std::erase_if(*all, [&](const auto& one) { return one.second.get() == connection; });
}

void RedisRun::receive(Round& round) {
  std::vector<pollfd> polled;
  std::vector<RedisConnection*> connections;
  while (!active_.empty()) {
    polled.clear();
    connections.assign(active_.begin(), active_.end());
    for (const RedisConnection* one : connections)
      polled.push_back({.fd = one->descriptor(),
                        .events = static_cast<short>(POLLIN | (one->has_to_send() ? POLLOUT : 0)),
                        .revents = 0});
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - RedisClock::now()).count();
    if (left <= 0) {
      for (RedisConnection* const one : connections) {
        const std::string why = one->address().text() + ": the server did not answer in time";
        client_.set_down(one->address(), why);
        drop(one, round, why);
      }
      return;
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(left));
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      try {
        connections[i]->proceed();
        if (connections[i]->waits()) continue;
        active_.erase(connections[i]);
        client_.set_up(connections[i]->address());
      } catch (const std::exception& error) {
        drop(connections[i], round, error.what());
      }
    }
  }
}

bool RedisRun::goes_on(Pending& one, Round& round) {
  if (!one.target.complete) return true;
  const std::string& error = one.target.error;
  one.ask = {};
  if (error.empty()) {
    one.command->done = true;
    return false;
  }
  problem_ = one.sent_to.text() + ": " + error;
  if (error.starts_with("MOVED ")) {
    client_.count_redirection();
    client_.moved(one.slot, address_of_redirection(error, one.sent_to));
    return round.refreshes = true;
  }
  if (error.starts_with("ASK ")) {
    client_.count_redirection();
    one.ask = address_of_redirection(error, one.sent_to);
    return true;
  }
  if (error.starts_with("TRYAGAIN") || error.starts_with("LOADING")) return round.waits = true;
  if (starts_with_one_of(error, {"CLUSTERDOWN", "MASTERDOWN", "READONLY"})) return round.waits = round.refreshes = true;
  return false;  // the command itself is wrong: do not retry
}

bool RedisRun::is_hopeless(const Pending& one, const Round& round) const {
  return one.ask.port == 0 && round.failed.contains(one.sent_to) && (down_before_.contains(one.sent_to) || !waits_);
}

std::string RedisRun::finish() {
  std::string refused;  // the last error of a command
  while (client_.map().masters.empty()) {
    try {
      client_.refresh(deadline_);
    } catch (const RedisRefused&) {
      throw;
    } catch (const std::exception&) {
      if (!waits_ || RedisClock::now() + kPause >= deadline_) throw;
      std::this_thread::sleep_for(kPause);
    }
  }
  for (int number = 0; !pending_.empty(); ++number) {
    Round round;
    send(round);
    receive(round);
    std::erase_if(pending_, [&](Pending& one) {
      const bool again = goes_on(one, round);
      if (!again && !one.command->done) refused = problem_;
      return !again;
    });
    if (pending_.empty()) break;
    if (round.refreshes) {
      try {
        client_.refresh(deadline_);
      } catch (const std::exception& error) {
        problem_ = error.what();
      }
    }
    // Drop commands for nodes that had already failed before this call, instead of waiting for these nodes again.
    const SlotMap map = client_.map();
    std::erase_if(pending_, [&](const Pending& one) {
      const RedisAddress* const master = map.master(one.slot);
      return is_hopeless(one, round) && master && *master == one.sent_to;
    });
    if (pending_.empty() || RedisClock::now() >= deadline_) return problem_;
    if (round.waits || number > 2) std::this_thread::sleep_until(std::min(deadline_, RedisClock::now() + kPause));
  }
  return refused;
}

}  // namespace hctr
