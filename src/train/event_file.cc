#include "train/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "core/base/expect.h"
#include "core/base/proto_wire.h"
#include "core/base/wall_time.h"

namespace hctr {
namespace {

constexpr const char *kEventFileStart = "events.out.tfevents.", *kEventVersion = "brain.Event:2";
constexpr uint64_t kMostEventBytes = uint64_t{1} << 24;  // maximum event size, far above that of a metrics line

constexpr std::array<uint32_t, 256> castagnoli_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0x82f63b78u : 0);
    table[byte] = value;
  }
  return table;
}

void append_bytes(std::string& to, int field, std::string_view value) {
  append_tag(to, field, WireType::bytes);
  append_varint(to, value.size());
  to += value;
}

/// The start of an encoded message Event { double wall_time = 1; int64 step = 2; ... }.
std::string begin_event(double unix_seconds, int64_t step) {
  std::string event;
  append_tag(event, 1, WireType::fixed64);
  append_fixed(event, std::bit_cast<uint64_t>(unix_seconds), 8);
  append_tag(event, 2, WireType::varint);
  append_varint(event, static_cast<uint64_t>(step));
  return event;
}

uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = castagnoli_table();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 255];
  return ~crc;
}

std::string tf_record(std::string_view content) {
  std::string record;
  append_fixed(record, content.size(), 8);
  append_fixed(record, masked(crc32c(record)), 4);
  record += content;
  append_fixed(record, masked(crc32c(content)), 4);
  return record;
}

std::vector<std::pair<std::string, double>> scalars_of(const Json& line) {
  std::vector<std::pair<std::string, double>> scalars;
  const Json* kind = line.find("kind");
  if (!kind || !kind->string() || !line.object()) return scalars;
  const bool table = *kind->string() == "table";
  if (!table && *kind->string() != "train" && *kind->string() != "eval") return scalars;
  std::string prefix = *kind->string() + "/";
  if (const Json* name = table ? line.find("table") : nullptr; name && name->string()) prefix += *name->string() + "/";
  for (const auto& [name, value] : *line.object())
    if (value.is_number() && name != "iteration" && name != "seconds" && name != "seconds_left")
      scalars.emplace_back(prefix + name, value.number());
  return scalars;
}

int64_t whole_event_bytes(const fs::path& path) {
  const File file(std::fopen(path.c_str(), "rbe"));
  int64_t whole = 0;
  std::string record;
  for (bool first = true; file; first = false) {
    unsigned char head[12];
    if (std::fread(head, 1, sizeof head, file.get()) != sizeof head) break;
    uint64_t length = 0;
    for (int byte = 7; byte >= 0; --byte) length = length << 8 | head[byte];
    if (length > kMostEventBytes) break;
    record.resize(length + 4);
    if (std::fread(record.data(), 1, record.size(), file.get()) != record.size()) break;
    const std::string expected = tf_record(std::string_view(record).substr(0, length));
    const std::string_view found(reinterpret_cast<const char*>(head), sizeof head);
    if (!expected.starts_with(found) || !expected.ends_with(std::string_view(record).substr(length))) break;
    if (first && record.find(kEventVersion) == record.npos) break;
    whole += static_cast<int64_t>(expected.size());
  }
  return whole;
}

EventFile::EventFile(const fs::path& folder, int64_t first_step, const Log& log) : log_(log) {
  const double now = unix_time();
  if (first_step <= 0 || !open_last(folder)) open_new(folder, now);
  if (first_step <= 0) return;
  std::string start = begin_event(now, first_step), session;
  append_tag(session, 1, WireType::varint);
  append_varint(session, 1);  // SessionLog { START }
  append_bytes(start, 7, session);
  append(start);
}

bool EventFile::open_last(const fs::path& folder) {
  std::error_code error;
  fs::path last;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(kEventFileStart)) last = std::max(last, at->path());
  const int64_t bytes = last.empty() ? 0 : whole_event_bytes(last);
  if (bytes == 0) return false;
  fs::resize_file(last, static_cast<uintmax_t>(bytes), error);  // removes an incomplete record after a kill
  if (error) return false;
  file_.reset(std::fopen(last.c_str(), "abe"));
  if (file_) path_ = last;
  return file_ != nullptr;
}

void EventFile::open_new(const fs::path& folder, double now) {
  char host[256] = "host";
  (void)::gethostname(host, sizeof host - 1);
  const std::string base = cat(kEventFileStart, static_cast<int64_t>(now), ".", host, ".", ::getpid());
  path_ = folder / base;
  for (int n = 2; fs::exists(path_); ++n) path_ = folder / cat(base, ".", n);
  file_.reset(std::fopen(path_.c_str(), "wbe"));
  if (!file_) throw Error(Kind::io, cat("cannot write '", path_.string(), "': ", std::strerror(errno)));
  std::string version = begin_event(now, 0);
  append_bytes(version, 3, kEventVersion);
  append(version);
}

void EventFile::add(const Json& line, double unix_seconds) {
  const auto scalars = scalars_of(line);
  const Json* iteration = line.find("iteration");
  if (!file_ || scalars.empty() || !iteration || !iteration->integer()) return;
  std::string summary;
  for (const auto& [name, number] : scalars) {
    std::string value;  // Value { string tag = 1; float simple_value = 2; }
    append_bytes(value, 1, name);
    append_tag(value, 2, WireType::fixed32);
    append_fixed(value, std::bit_cast<uint32_t>(static_cast<float>(number)), 4);
    append_bytes(summary, 1, value);
  }
  std::string event = begin_event(unix_seconds, *iteration->integer());
  append_bytes(event, 5, summary);
  append(event);
}

void EventFile::append(const std::string& event) {
  const std::string record = tf_record(event);
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size() && std::fflush(file_.get()) == 0)
    return;
  log_.warning("cannot write '", path_.string(), "': ", std::strerror(errno),
               "; training continues without its events");
  file_.reset();
}

}  // namespace hctr
