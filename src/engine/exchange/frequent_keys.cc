#include "engine/exchange/frequent_keys.h"

#include <algorithm>
#include <utility>

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

/// Returns the member as an integer. Errors: Error(data).
int64_t whole_number(const Json& entry, std::string_view member, const std::string& where) {
  const Json* value = entry.find(member);
  if (!value || !value->integer()) throw Error(Kind::data, cat(where, " lacks the integer \"", member, "\""));
  return *value->integer();
}

}  // namespace

FrequentKeys read_frequent_keys(const std::filesystem::path& path, bool by_slot, int64_t slots) {
  const Json file = Json::read_file(path);
  const Json* hottest = file.find("hottest");
  if (!hottest || !hottest->array())
    throw Error(Kind::data, cat("'", path.string(),
                                "' contains no hot keys: expected {\"hottest\": [{\"slot\": 0, \"key\": 7}, ...]}, "
                                "as table_inspect --count --json writes it"));
  std::vector<std::pair<int32_t, int64_t>> all;
  for (size_t i = 0; i < hottest->array()->size(); ++i) {
    const Json& entry = (*hottest->array())[i];
    const std::string where = cat("'", path.string(), "': entry ", i, " of \"hottest\"");
    const int64_t slot = by_slot ? whole_number(entry, "slot", where) : 0;
    if (slot < 0 || slot >= slots)
      throw Error(Kind::data, cat(where, ": slot ", slot, " does not exist; there are ", slots));
    all.emplace_back(static_cast<int32_t>(slot), whole_number(entry, "key", where));
  }
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice != all.end()) {
    if (by_slot)
      throw Error(Kind::data,
                  cat("'", path.string(), "': key ", twice->second, " of slot ", twice->first, " is listed twice"));
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  FrequentKeys keys;
  for (const auto& [slot, key] : all) {
    keys.keys.push_back(key);
    if (by_slot) keys.slots.push_back(slot);
  }
  return keys;
}

}  // namespace hctr
