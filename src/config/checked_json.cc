#include "config/checked_json.h"

#include <span>

#include "core/base/expect.h"
#include "core/base/file_checksum.h"

namespace hctr {
namespace {

// The checksum is the object's last member and covers everything before it.
constexpr std::string_view kBefore = ",\n \"crc32\": \"", kAfter = "\"\n}\n";

std::string closing(std::string_view body) {
  return cat(kBefore, crc_text(crc32_of(std::as_bytes(std::span(body)))), kAfter);
}

[[noreturn]] void refuse_damaged(const fs::path& path) {
  throw Error(Kind::data, cat("'", path.string(), "' is damaged: the checksum at its end does not match"));
}

bool has_checksum(std::string_view text) {
  const size_t end = text.rfind(kBefore);
  return end != text.npos && text.substr(end) == closing(text.substr(0, end));
}

}  // namespace

std::string with_checksum(const Json& object) {
  std::string body = object.text(1);
  HCTR_EXPECT(body.ends_with("\n}"), "JSON with a checksum must be an object with members");
  body.resize(body.size() - 2);
  return body + closing(body);
}

Json read_checked_json(const fs::path& path, std::string_view what, int64_t schema) {
  const std::string text = read_text(path, what);
  if (!has_checksum(text)) refuse_damaged(path);
  Json json = Json::parse(text, path.string());
  const Json* found = json.find("schema");
  if (!found || !found->integer() || *found->integer() != schema)
    throw Error(Kind::data, cat("'", path.string(), "' has schema ", found ? found->text() : "nothing",
                                "; this version reads ", schema));
  return json;
}

Json read_json_checked_from(int64_t first_checked, const fs::path& path, std::string_view what, bool& checked) {
  const std::string text = read_text(path, what);
  checked = has_checksum(text);
  if (!checked && text.find(kBefore) != text.npos) refuse_damaged(path);
  try {
    const Json json = Json::parse(text, path.string());
    const Json* schema = json.find("schema");
    if (!checked && schema && schema->is_number() && schema->number() >= static_cast<double>(first_checked))
      refuse_damaged(path);
    return json;
  } catch (const Error& error) {
    throw Error(Kind::data, error.what());
  }
}

}  // namespace hctr
