#include "formats/data/column_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"

namespace hctr {

const ColumnStatistics* find_statistics(const std::vector<ColumnStatistics>& all, const std::string& column, bool log) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const ColumnStatistics& one) { return one.column == column && one.log == log; });
  return found == all.end() ? nullptr : &*found;
}

Json to_json(const std::vector<ColumnStatistics>& all) {
  Json list(Json::Array{});
  for (const ColumnStatistics& one : all)
    list.add(Json(Json::Object{
        {"column", one.column}, {"log", one.log}, {"mean", one.mean}, {"std", one.std}, {"values", one.values}}));
  return list;
}

std::vector<ColumnStatistics> column_statistics(const Json& json) {
  const auto fail = [](const std::string& place, const char* expected, const Json* found) {
    throw Error(Kind::data,
                cat("\"statistics\"", place, ": expected ", expected, ", found ", found ? found->text() : "nothing"));
  };
  std::vector<ColumnStatistics> all;
  if (!json.array()) fail("", "an array", &json);
  for (const Json& entry : *json.array()) {
    const std::string place = cat("/", all.size());
    ColumnStatistics& one = all.emplace_back();
    const auto needed = [&](const char* name, const char* expected, const auto& fits) -> const Json& {
      const Json* value = entry.object() ? entry.find(name) : nullptr;
      if (!value || !fits(*value)) fail(cat(place, "/", name), expected, value);
      return *value;
    };
    const auto is_number = [](const Json& value) { return value.is_number() && std::isfinite(value.number()); };
    one.column = *needed("column", "a string", [](const Json& value) { return value.string(); }).string();
    one.log = *needed("log", "true or false", [](const Json& value) { return value.boolean(); }).boolean();
    one.mean = needed("mean", "a number", is_number).number();
    one.std = needed("std", "a number more than 0", [&](const Json& value) {
                return is_number(value) && value.number() > 0;
              }).number();
    one.values = *needed("values", "an integer", [](const Json& value) { return value.integer(); }).integer();
  }
  return all;
}

}  // namespace hctr
