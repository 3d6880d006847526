#include "store/table_names.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "core/base/expect.h"

namespace hctr {
namespace {

bool is_name_of_hugectr(std::string_view name) {
  return !name.empty() && name.size() <= 120 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

std::string hugectr_table_name(const std::string& space) {
  std::vector<std::string> parts(1);
  for (const char c : space)
    if (c == '/')
      parts.emplace_back();
    else
      parts.back() += c;
  if (parts.size() == 4)
    throw Error(Kind::config, cat("rows of '", space,
                                  "' are identified by slot and key. HugeCTR's names cannot express slots; remove "
                                  "\"names\": \"hugectr\""));
  if (parts.size() != 3 || !is_name_of_hugectr(parts[0]) || !is_name_of_hugectr(parts[1]))
    throw Error(Kind::config, cat("model and table of '", space,
                                  "' are not HugeCTR names, which consist of letters, digits, '_' and '-'; rename "
                                  "model and table, or remove \"names\": \"hugectr\""));
  return cat("hps_et.", parts[0], ".", parts[1]);
}

uint32_t hugectr_partition(int64_t key, uint32_t partitions) {
  auto x = static_cast<uint64_t>(key);
  x ^= std::rotr(x, 25) ^ std::rotr(x, 50);
  x *= 0xA24BAED4963EE407u;
  x ^= std::rotr(x, 24) ^ std::rotr(x, 49);
  x *= 0x9FB21C651E98DF25u;
  x ^= x >> 28;
  return static_cast<uint32_t>(x % partitions);
}

}  // namespace hctr
