#include "store/redis_level.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "hctr/error.h"
#include "hctr/store.h"
#include "store/level_plugins.h"
#include "store/table_names.h"
#include "support/level_rows.h"
#include "support/message_of.h"
#include "support/redis_servers.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

/// Long enough that delays on a busy machine are no failures.
constexpr int32_t kLongTimeoutMs = 30000;

StoreRedisOptions redis_at(const RedisServers& servers) {
  return {.addresses = servers.addresses(), .partitions = 8, .connections = 2, .timeout_ms = kLongTimeoutMs};
}

class RedisLevels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_redis(); !why.empty()) GTEST_SKIP() << why;
    try {
      redis_plugin();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

std::vector<float> row_for(int64_t key, float round) { return {static_cast<float>(key), round, -round}; }

/// Writes row `round` for the keys [0, count).
LevelRows put_keys(LevelTable& table, int64_t count, float round) {
  LevelRows plain;
  std::vector<int64_t> keys;
  std::vector<float> rows;
  for (int64_t key = 0; key < count; ++key) {
    plain[key] = row_for(key, round);
    keys.push_back(key);
    rows.insert(rows.end(), plain[key].begin(), plain[key].end());
  }
  table.put(keys, rows.data());
  return plain;
}

/// Counts the keys in [0, count) that have a row. Each row must equal the row in `plain`.
int64_t count_right(LevelTable& table, int64_t count, const LevelRows& plain) {
  std::vector<int64_t> keys(static_cast<size_t>(count));
  for (int64_t key = 0; key < count; ++key) keys[static_cast<size_t>(key)] = key;
  std::vector<float> rows(keys.size() * 3);
  std::vector<uint8_t> found(keys.size());
  const int64_t hits = table.get({keys}, rows.data(), 3, found.data());
  for (int64_t key = 0; key < count; ++key) {
    const float* const row = rows.data() + key * 3;
    if (found[static_cast<size_t>(key)]) {
      EXPECT_EQ(std::vector<float>(row, row + 3), plain.at(key));
    }
  }
  return hits;
}

void expect_as_a_plain_map(const StoreRedisOptions& options, bool lowest) {
  RedisLevel level(options, lowest);
  const auto table = level.table("m/t/0", 3, 0);
  LevelRows plain;
  std::mt19937_64 random(2);
  for (float round = 0; round < 60; ++round) {
    std::vector<int64_t> keys, removed;
    std::vector<float> rows;
    for (int i = 0; i < 50; ++i) {
      const int64_t key = static_cast<int64_t>(random() % 400) - 200;
      if (random() % 3 == 0) {
        removed.push_back(key);
        continue;
      }
      keys.push_back(key);
      const std::vector<float> row = row_for(key, round + static_cast<float>(i) / 64);
      rows.insert(rows.end(), row.begin(), row.end());
      plain[key] = row;
    }
    table->put(keys, rows.data());
    table->remove(removed);
    for (const int64_t key : removed) plain.erase(key);
    if (lowest && round >= 20) level.commit("");
    ASSERT_EQ(table->size(), std::ssize(plain));
    std::vector<int64_t> asked;
    for (int i = 0; i < 100; ++i) asked.push_back(static_cast<int64_t>(random() % 400) - 200);
    std::vector<float> got(asked.size() * 4);
    std::vector<uint8_t> found(asked.size());
    table->get({asked}, got.data(), 4, found.data());
    for (size_t i = 0; i < asked.size(); ++i) {
      ASSERT_EQ(found[i] != 0, plain.contains(asked[i]));
      if (found[i]) {
        ASSERT_EQ(std::vector<float>(got.data() + 4 * i, got.data() + 4 * i + 3), plain.at(asked[i]));
      }
    }
  }
  EXPECT_EQ(level_rows(*table), plain);
}

TEST_F(RedisLevels, AnswersAsAPlainMapDoesOnOneServerAndLeavesNothingThere) {
  const RedisServers servers;
  for (const bool lowest : {true, false}) expect_as_a_plain_map(redis_at(servers), lowest);
  EXPECT_EQ(servers.cli(0, "dbsize"), "0");
}

TEST_F(RedisLevels, AnswersAsAPlainMapDoesWithPasswordAndTls) {
  const RedisServers servers({.tls = true, .password = "secret"});
  StoreRedisOptions options = redis_at(servers);
  options.tls = true;
  options.ca = servers.ca();
  options.certificate = servers.certificate();
  options.key = servers.key();
  options.password = "secret";
  expect_as_a_plain_map(options, true);
  const auto message_with = [](const StoreRedisOptions& wrong) {
    return message_of(Kind::io, [&] { RedisLevel(wrong, true).table("m/t/0", 3, 0); });
  };
  StoreRedisOptions wrong = options;
  wrong.password = "wrong";
  EXPECT_NE(message_with(wrong).find("WRONGPASS"), std::string::npos) << message_with(wrong);
  wrong = options;
  wrong.server_name = "other.host";
  EXPECT_NE(message_with(wrong).find("hostname mismatch"), std::string::npos) << message_with(wrong);
  wrong = options;
  wrong.ca = "";
  EXPECT_NE(message_with(wrong).find("TLS: checking the server's certificate"), std::string::npos)
      << message_with(wrong);
  servers.cli(0, "acl setuser reader on '>word' '~*' +@all");
  options.user = "reader";
  options.password = "word";
  RedisLevel level(options, true);
  EXPECT_EQ(level.table("m/t/0", 3, 0)->size(), 0);
}

TEST_F(RedisLevels, SlotsThatMoveDuringLookUpsLoseNoRow) {
  const RedisServers servers({.count = 3, .cluster = true});
  StoreRedisOptions options = redis_at(servers);
  options.names = StoreNames::hugectr;
  expect_as_a_plain_map(options, true);
  RedisLevel level(options, true);
  const auto table = level.table("wdl/deep/0", 3, 0);
  const LevelRows plain = put_keys(*table, 500, 1);
  std::atomic<bool> done{false};
  std::atomic<int64_t> asked{0}, wrong{0};
  std::thread reader([&] {
    while (!done.load()) {
      wrong += count_right(*table, 500, plain) != 500;
      ++asked;
    }
  });
  for (int p = 0; p < 8; ++p) {
    const std::string key = "hps_et{hps_et.wdl.deep/p" + std::to_string(p) + "}v";
    const size_t from = servers.owner_of(key);
    servers.move_slot(servers.slot_of(key), from, (from + 1) % 3);
    const int64_t before = asked;
    while (asked < before + 2) std::this_thread::yield();
  }
  done = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(level_rows(*table), plain);
  put_keys(*table, 500, 2);
  EXPECT_EQ(table->size(), 500);
}

TEST_F(RedisLevels, ALostNodeGivesUpItsRowsAboveAnotherLevelAndNeverAnOldOne) {
  RedisServers servers({.count = 3, .cluster = true});
  RedisLevel level(redis_at(servers), false);
  const auto table = level.table("m/t/0", 3, 0);
  const LevelRows first = put_keys(*table, 300, 1);
  EXPECT_EQ(count_right(*table, 300, first), 300);
  EXPECT_EQ(table->statistics().failed, 0);
  servers.kill(1);
  const int64_t left = count_right(*table, 300, first);
  EXPECT_LT(left, 300);
  EXPECT_EQ(table->statistics().failed, 300 - left);
  const LevelRows second = put_keys(*table, 300, 2);  // one of the servers is down, so some rows are not written
  EXPECT_EQ(count_right(*table, 300, second), 0);
  servers.start(1);
  LevelRows third;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  do {
    third = put_keys(*table, 300, 3);
  } while (count_right(*table, 300, third) < 300 && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(count_right(*table, 300, third), 300);
}

TEST_F(RedisLevels, AReplicaAnswersForItsMasterAndTakesItsPlace) {
  RedisServers servers({.count = 4, .cluster = true, .replicas = 1});
  StoreRedisOptions options = redis_at(servers);
  RedisLevel level(options, true);
  const auto table = level.table("m/t/0", 3, 0);
  const LevelRows plain = put_keys(*table, 300, 1);
  options.names = StoreNames::hugectr;
  options.read_replicas = true;
  RedisLevel reader(options, false);
  const auto copied = reader.table("m/t/0", 3, 0);
  put_keys(*copied, 300, 1);
  EXPECT_EQ(count_right(*copied, 300, plain), 300);
  servers.cli(0, "wait 1 60000");
  servers.kill(0);
  EXPECT_EQ(count_right(*copied, 300, plain), 300);  // the replica serves these look-ups before it becomes master
  servers.cli(3, "cluster failover takeover");
  EXPECT_EQ(count_right(*table, 300, plain), 300);
  const LevelRows second = put_keys(*table, 300, 2);
  EXPECT_EQ(count_right(*table, 300, second), 300);
}

TEST_F(RedisLevels, WhatIsLostBelowIsAnErrorAndNoDefaultRow) {
  RedisServers servers;
  StoreRedisOptions options = redis_at(servers);
  RedisLevel level(options, true);
  const auto table = level.table("m/t/0", 3, 0);
  const LevelRows plain = put_keys(*table, 100, 1);
  servers.kill(0);
  servers.start(0);  // the restarted server has no rows
  EXPECT_NE(message_of(Kind::io, [&] { count_right(*table, 100, plain); }).find("has lost rows"), std::string::npos);
  servers.kill(0);
  options.timeout_ms = 50;
  const std::string message = message_of(Kind::io, [&] { RedisLevel(options, true).table("m/t/0", 3, 0); });
  EXPECT_NE(message.find(servers.addresses()[0] + ": cannot connect"), std::string::npos) << message;
  RedisLevel above(options, false);  // opens although Redis is unreachable
  EXPECT_EQ(count_right(*above.table("m/t/0", 3, 0), 10, plain), 0);
}

TEST_F(RedisLevels, AServerThatHangsIsLeftAloneForAWhile) {
  const RedisServers servers;
  StoreRedisOptions options = redis_at(servers);
  options.timeout_ms = 100;
  RedisLevel level(options, false);
  const auto table = level.table("m/t/0", 3, 0);
  servers.pause(0);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(count_right(*table, 10, {}), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));  // 200 timeouts would take 20 s
  EXPECT_EQ(table->statistics().failed, 2000);
  servers.resume(0);
}

TEST_F(RedisLevels, AChangeThatFailsHalfwayLeavesTheRowsBefore) {
  const RedisServers servers;
  RedisLevel level(redis_at(servers), true);
  const auto table = level.table("m/t/0", 3, 0);
  const LevelRows plain = put_keys(*table, 50, 1);
  level.commit("");
  put_keys(*table, 70, 2);
  const std::vector<int64_t> gone = {3, 4, 60};
  table->remove(gone);
  EXPECT_EQ(count_right(*table, 70, plain), 50);  // changes are not visible before the commit
  servers.cli(0, "acl setuser default -hdel");
  EXPECT_NE(message_of(Kind::io, [&] { level.commit(""); }).find("NOPERM"), std::string::npos);
  level.roll_back();
  EXPECT_EQ(count_right(*table, 70, plain), 50);  // the old rows remain, although the failed commit has changed Redis
  servers.cli(0, "acl setuser default +hdel");
  EXPECT_EQ(table->size(), 50);
  EXPECT_EQ(level_rows(*table), plain);
  put_keys(*table, 10, 3);
  level.commit("");
  EXPECT_EQ(level_rows(*table).at(3), row_for(3, 3));
}

TEST_F(RedisLevels, RowsBeyondTheLimitAreEvictedByTheRuleAndPartitionsExpire) {
  const RedisServers servers;
  using Eviction = StoreRedisOptions::Eviction;
  for (const Eviction eviction : {Eviction::random, Eviction::least_used, Eviction::oldest}) {
    StoreRedisOptions options = redis_at(servers);
    options.partitions = 2;
    options.most_rows = 100;
    options.eviction = eviction;
    options.expire_seconds = 1000;
    RedisLevel level(options, false);
    const auto table = level.table("m/t/0", 3, 0);
    std::vector<int64_t> often = {1000, 1001, 1002, 1003};
    std::vector<float> rows(12, 1);
    for (int i = 0; i < 5; ++i) table->put(often, rows.data());
    LevelRows plain = put_keys(*table, 150, 1);
    for (int64_t key = 0; key < 400; ++key) table->put({&key, 1}, row_for(key, 2).data());
    EXPECT_LE(table->size(), 200);
    EXPECT_GE(table->size(), 150);
    std::vector<uint8_t> found(4);
    const int64_t hits = table->get({often}, rows.data(), 3, found.data());
    if (eviction == Eviction::least_used) {
      EXPECT_EQ(hits, 4);
    }
    if (eviction == Eviction::oldest) continue;
    const std::string key = servers.cli(0, "--scan --pattern '*v'").substr(0, 200);
    EXPECT_GT(std::stoi(servers.cli(0, "ttl '" + key.substr(0, key.find('\n')) + "'")), 900);
  }
}

TEST_F(RedisLevels, RowsOfAnotherProcessAreNotTakenForRowsOfTheLevelBelow) {
  const RedisServers servers;
  StoreRedisOptions options = redis_at(servers);
  options.names = StoreNames::hugectr;
  RedisLevel other(options, true), above(options, false);
  const LevelRows plain = put_keys(*other.table("m/t/0", 3, 0), 20, 1);
  const auto table = above.table("m/t/0", 3, 0);
  EXPECT_EQ(count_right(*table, 20, plain), 0);
  put_keys(*table, 20, 1);
  EXPECT_EQ(count_right(*table, 20, plain), 20);
}

TEST_F(RedisLevels, ReadsAndWritesTheHashesOfTheOriginal) {
  const RedisServers servers;
  StoreRedisOptions options = redis_at(servers);
  options.names = StoreNames::hugectr;
  options.keep_rows = true;
  {
    RedisLevel level(options, true);
    const auto table = level.table("wdl/deep/0", 3, 0);
    put_keys(*table, 100, 1);
    // Field: the bytes of the key. Value: the floats of the row.
    const std::string hash = "'hps_et{hps_et.wdl.deep/p" + std::to_string(hugectr_partition(77, 8)) + "}v'";
    EXPECT_EQ(servers.cli(0,
                          "eval 'return redis.call(\"hget\", KEYS[1], \"M\\0\\0\\0\\0\\0\\0\\0\") == "
                          "struct.pack(\"<fff\", 77, 1, -1)' 1 " +
                              hash),
              "1");
  }
  EXPECT_EQ(servers.cli(0, "dbsize"), "8");  // the Redis servers keep their rows
  RedisLevel level(options, true);
  const auto table = level.adopt("wdl/deep/7", 3);
  EXPECT_EQ(table->size(), 100);
  level.drop("wdl/deep/7");
  EXPECT_EQ(servers.cli(0, "dbsize"), "8");
  EXPECT_NE(message_of(Kind::config, [&] { level.adopt("wdl/wide/7", 3); }).find("has no rows of"), std::string::npos);
  level.table("wdl/deep/8", 3, 0);
  EXPECT_NE(message_of(Kind::config, [&] { level.table("wdl/deep/9", 3, 0); }).find("can have only one version"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
