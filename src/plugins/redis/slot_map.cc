#include "plugins/redis/slot_map.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace hctr {
namespace {

/// CRC-16/XMODEM.
uint16_t crc16(std::string_view bytes) {
  uint32_t crc = 0;
  for (const char byte : bytes) {
    crc ^= static_cast<uint32_t>(static_cast<unsigned char>(byte)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000) ? 0x1021 : 0);
    crc &= 0xFFFF;
  }
  return static_cast<uint16_t>(crc);
}

RedisAddress address_in(const RedisReply& node, const RedisAddress& asked) {
  if (node.elements.size() < 2) throw std::runtime_error("CLUSTER SLOTS returned a node without an address");
  const std::string& host = node.elements[0].text;
  return {host.empty() || host == "?" ? asked.host : host, static_cast<int>(node.elements[1].integer)};
}

}  // namespace

int redis_slot(std::string_view key) {
  const size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kRedisSlots;
}

void SlotMap::move(int slot, const RedisAddress& to) {
  const auto at = std::find(masters.begin(), masters.end(), to);
  const auto number = static_cast<int16_t>(at - masters.begin());
  if (at == masters.end()) {
    masters.push_back(to);
    replicas.emplace_back();
  }
  if (master_of.empty()) master_of.assign(kRedisSlots, -1);
  master_of[static_cast<size_t>(slot)] = number;
}

SlotMap SlotMap::alone(const RedisAddress& server) {
  SlotMap map;
  map.masters = {server};
  map.replicas.emplace_back();
  map.master_of.assign(kRedisSlots, 0);
  return map;
}

SlotMap SlotMap::of_reply(const RedisReply& reply, const RedisAddress& asked) {
  SlotMap map;
  map.master_of.assign(kRedisSlots, -1);
  for (const RedisReply& range : reply.elements) {
    if (range.elements.size() < 3) throw std::runtime_error("CLUSTER SLOTS returned a range without a node");
    const int64_t first = range.elements[0].integer, last = range.elements[1].integer;
    if (first < 0 || last >= kRedisSlots || first > last)
      throw std::runtime_error(
          "CLUSTER SLOTS returned an "
          "invalid range, expected slots "
          "0 to 16383");
    const RedisAddress master = address_in(range.elements[2], asked);
    for (int64_t slot = first; slot <= last; ++slot) map.move(static_cast<int>(slot), master);
    std::vector<RedisAddress>& of = map.replicas[static_cast<size_t>(map.master_of[static_cast<size_t>(first)])];
    for (size_t n = 3; n < range.elements.size(); ++n) {
      const RedisAddress replica = address_in(range.elements[n], asked);
      if (std::find(of.begin(), of.end(), replica) == of.end()) of.push_back(replica);
    }
  }
  return map;
}

RedisAddress redis_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  RedisAddress address;
  const auto wrong = [&] {
    return std::runtime_error("\"" + std::string(text) +
                              "\" is not an address; expected "
                              "one such as host:6379");
  };
  if (colon == std::string_view::npos || colon == 0) throw wrong();
  const char *const first = text.data() + colon + 1, *const last = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(first, last, address.port);
  if (problem != std::errc() || stop != last || address.port < 1 || address.port > 65535) throw wrong();
  address.host = text.substr(0, colon);
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  return address;
}

}  // namespace hctr
