#include "formats/reader/reader_position.h"

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr int64_t kSchema = 1;

/// Calls visit(name, field) for each field. `Position` may be const.
template <class Position, class Visit>
void each_field(Position& at, Visit&& visit) {
  visit("pass", at.pass);
  visit("file", at.file);
  visit("record", at.record);
  visit("offset", at.offset);
  visit("rows", at.rows);
  visit("window", at.window);
  visit("taken", at.taken);
  visit("samples", at.samples);
  visit("bad_records", at.bad_records);
}

}  // namespace

void expect_file_of(const ReaderPosition& position, size_t files) {
  if (position.file < 0 || static_cast<size_t>(position.file) >= files)
    throw Error(Kind::data, cat("a reader cannot resume in file ", position.file + 1, " of a set of ", files));
}

Json to_json(const ReaderPosition& position) {
  Json json;
  json.set("schema", kSchema);
  each_field(position, [&](const char* name, const int64_t& value) { json.set(name, value); });
  return json;
}

ReaderPosition reader_position(const Json& json) {
  const auto number = [&](const char* name) {
    const Json* value = json.find(name);
    const int64_t* whole = value ? value->integer() : nullptr;
    if (!whole || *whole < 0)
      throw Error(Kind::data, cat("the saved position of a reader needs \"", name,
                                  "\", an integer of at least 0; found ", value ? value->text() : "nothing"));
    return *whole;
  };
  if (number("schema") != kSchema)
    throw Error(Kind::data,
                cat("the saved position of a reader has schema ", number("schema"), "; this version reads ", kSchema));
  ReaderPosition position;
  each_field(position, [&](const char* name, int64_t& value) { value = number(name); });
  return position;
}

}  // namespace hctr
