#include "stream/delta_message.h"

#include <cstring>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/base/file_checksum.h"

namespace hctr {
namespace {

constexpr char kMagic[4] = {'H', 'C', 'D', 'S'};
constexpr uint16_t kVersion = 1;
constexpr size_t kCrcAt = 8;
constexpr int64_t kMostDim = 1 << 20;

template <class T>
void put_number(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T number_at(std::string_view from, size_t at) {
  T value;
  std::memcpy(&value, from.data() + at, sizeof value);
  return value;
}

template <class T>
void put_list(std::string& to, std::span<const T> values) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <class T>
void take_list(std::string_view& from, size_t count, std::vector<T>& to) {
  const size_t before = to.size();
  to.resize(before + count);
  if (count > 0) std::memcpy(to.data() + before, from.data(), count * sizeof(T));
  from.remove_prefix(count * sizeof(T));
}

uint32_t crc_of_message(std::string_view message) {
  const auto bytes = std::as_bytes(std::span(message.data(), message.size()));
  return crc32_of(bytes.subspan(kCrcAt + 4), crc32_of(bytes.first(kCrcAt)));
}

[[noreturn]] void not_a_delta(const std::string& why) {
  throw Error(Kind::data, cat("a delta of the stream is malformed: ", why));
}

const Json& begin_member(const Json& json, const char* name) {
  const Json* const found = json.find(name);
  if (!found) not_a_delta(cat("its first message lacks '", name, "'"));
  return *found;
}

int64_t begin_integer(const Json& json, const char* name) {
  const int64_t* const number = begin_member(json, name).integer();
  if (!number) not_a_delta(cat("'", name, "' of its first message is not an integer"));
  return *number;
}

std::string begin_text(const Json& json, const char* name) {
  const std::string* const text = begin_member(json, name).string();
  if (!text) not_a_delta(cat("'", name, "' of its first message is not a string"));
  return *text;
}

void add_file(std::string_view body, uint32_t count, StreamedDelta& delta) {
  constexpr size_t kFixed = 18;
  const size_t name_bytes = body.size() < kFixed ? 0 : number_at<uint16_t>(body, 16);
  if (body.size() != kFixed + name_bytes + count)
    not_a_delta(
        "the size of a file message does not match its "
        "content");
  const auto offset = number_at<uint64_t>(body, 0), size = number_at<uint64_t>(body, 8);
  const std::string name(body.substr(kFixed, name_bytes));
  const std::string_view bytes = body.substr(kFixed + name_bytes);
  if (delta.files.empty() || delta.files.back().first != name) delta.files.emplace_back(name, "");
  std::string& content = delta.files.back().second;
  if (content.size() != offset || size < offset || size - offset < bytes.size())
    not_a_delta(cat("file '", name, "' of ", size, " bytes: a message has ", bytes.size(), " bytes from byte ", offset,
                    " on, expected byte ", content.size()));
  content += bytes;
}

}  // namespace

uint32_t write_delta_message(const DeltaMessageHead& head, std::string_view body, std::string& message) {
  message.clear();
  message.reserve(kDeltaHeadBytes + body.size());
  message.append(kMagic, sizeof kMagic);
  put_number(message, kVersion);
  put_number(message, head.kind);
  put_number(message, uint8_t{0});
  put_number(message, uint32_t{0});
  put_number(message, head.table);
  put_number(message, head.stream);
  put_number(message, head.sequence);
  put_number(message, head.delta);
  put_number(message, head.index);
  put_number(message, head.count);
  message += body;
  const uint32_t crc = crc_of_message(message);
  std::memcpy(message.data() + kCrcAt, &crc, sizeof crc);
  return crc;
}

std::string read_delta_message(std::string_view message, DeltaMessageHead& head, std::string_view& body) {
  if (message.size() < kDeltaHeadBytes) return cat(message.size(), " bytes are too few for a message of a delta");
  if (std::memcmp(message.data(), kMagic, sizeof kMagic) != 0) return "a message does not start with HCDS";
  if (const auto version = number_at<uint16_t>(message, 4); version != kVersion)
    return cat("a message has version ", version, ", but this program reads version ", kVersion);
  head.crc = number_at<uint32_t>(message, kCrcAt);
  if (crc_of_message(message) != head.crc) return "the checksum of a message does not match";
  head.kind = static_cast<DeltaMessageKind>(message[6]);
  if (head.kind < DeltaMessageKind::begin || head.kind > DeltaMessageKind::end) return "a message has an unknown kind";
  head.table = number_at<uint32_t>(message, 12);
  head.stream = number_at<uint64_t>(message, 16);
  head.sequence = number_at<uint64_t>(message, 24);
  head.delta = number_at<uint64_t>(message, 32);
  head.index = number_at<uint32_t>(message, 40);
  head.count = number_at<uint32_t>(message, 44);
  body = message.substr(kDeltaHeadBytes);
  return "";
}

std::string begin_body(const StreamedAbout& about) {
  Json json, tables(Json::Array{});
  json.set("run", about.run);
  json.set("iteration", about.iteration);
  json.set("base", about.base);
  json.set("written", about.written);
  for (const StreamedAbout::Table& table : about.tables) {
    Json one;
    one.set("name", table.name);
    one.set("dim", table.dim);
    one.set("by_slot", table.by_slot);
    one.set("rows", table.rows);
    tables.add(std::move(one));
  }
  json.set("tables", std::move(tables));
  return json.text();
}

StreamedAbout read_begin_body(std::string_view body) {
  const Json json = Json::parse(body, "the first message of a delta");
  StreamedAbout about{.run = begin_text(json, "run"),
                      .iteration = begin_integer(json, "iteration"),
                      .base = begin_integer(json, "base"),
                      .written = begin_member(json, "written").is_number() ? json.find("written")->number() : 0};
  const Json::Array* const tables = begin_member(json, "tables").array();
  if (!tables) not_a_delta("'tables' of its first message is not a list");
  for (const Json& table : *tables) {
    const bool* const by_slot = begin_member(table, "by_slot").boolean();
    about.tables.push_back({.name = begin_text(table, "name"),
                            .dim = begin_integer(table, "dim"),
                            .by_slot = by_slot && *by_slot,
                            .rows = begin_integer(table, "rows")});
    if (about.tables.back().dim < 1 || about.tables.back().dim > kMostDim)
      not_a_delta(cat("table '", about.tables.back().name, "' has rows of ", about.tables.back().dim, " elements"));
  }
  return about;
}

std::string rows_body(std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> rows) {
  std::string body;
  body.reserve(slots.size_bytes() + keys.size_bytes() + rows.size_bytes());
  put_list(body, slots);
  put_list(body, keys);
  put_list(body, rows);
  return body;
}

std::string file_body(std::string_view name, uint64_t offset, uint64_t size, std::string_view bytes) {
  std::string body;
  put_number(body, offset);
  put_number(body, size);
  put_number(body, static_cast<uint16_t>(name.size()));
  body += name;
  body += bytes;
  return body;
}

std::string end_body(uint32_t messages, uint32_t crc) {
  std::string body;
  put_number(body, messages);
  put_number(body, crc);
  return body;
}

bool read_end_body(std::string_view body, uint32_t& messages, uint32_t& crc) {
  if (body.size() != 8) return false;
  messages = number_at<uint32_t>(body, 0);
  crc = number_at<uint32_t>(body, 4);
  return messages >= 2;
}

void add_message(const DeltaMessageHead& head, std::string_view body, StreamedDelta& delta) {
  if (head.kind == DeltaMessageKind::file) return add_file(body, head.count, delta);
  if (head.kind != DeltaMessageKind::rows && head.kind != DeltaMessageKind::removed) return;
  if (head.table >= delta.about.tables.size())
    not_a_delta(
        cat("a message names table ", head.table, ", but the delta has ", delta.about.tables.size(), " tables"));
  const StreamedAbout::Table& table = delta.about.tables[head.table];
  const bool has_rows = head.kind == DeltaMessageKind::rows;
  const size_t count = head.count, row_bytes = has_rows ? static_cast<size_t>(table.dim) * sizeof(float) : 0;
  if (body.size() != count * ((table.by_slot ? 4 : 0) + 8 + row_bytes))
    not_a_delta(cat("a message with ", count, " rows of table '", table.name, "' has ", body.size(), " bytes"));
  StreamedDelta::Rows& to = delta.tables[head.table];
  if (table.by_slot) take_list(body, count, has_rows ? to.slots : to.removed_slots);
  take_list(body, count, has_rows ? to.keys : to.removed);
  if (has_rows) take_list(body, count * static_cast<size_t>(table.dim), to.rows);
}

uint32_t crc_of_crcs(std::span<const uint32_t> crcs) { return crc32_of(std::as_bytes(crcs)); }

}  // namespace hctr
