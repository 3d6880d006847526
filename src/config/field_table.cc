#include "config/field_table.h"

#include "core/base/expect.h"

namespace hctr {
namespace {

void add_rows(const std::vector<FieldDoc>& fields, const std::string& prefix, std::string& text) {
  for (const FieldDoc& field : fields) {
    std::string names = cat("`", prefix, field.name, "`");
    for (const std::string& alias : field.aliases) names += cat(", `", prefix, alias, "`");
    text += cat("| ", names, " | ", field.type, field.range.empty() ? "" : cat(", ", field.range), " | ",
                field.required               ? "required"
                : field.default_text.empty() ? ""
                                             : cat("`", field.default_text, "`"),
                " | ", field.text, " |\n");
    add_rows(field.inner, cat(prefix, field.name, field.type == "object" ? "." : "[]."), text);
  }
}

std::string line_of(const char* start, const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string text;
  for (const auto& [key, why] : keys) text += cat(text.empty() ? start : ", ", "`", key, "` (", why, ")");
  return text.empty() ? "" : text + ".\n";
}

}  // namespace

std::string field_table(const std::vector<FieldDoc>& fields) {
  if (fields.empty()) return "";
  std::string text = "| field | type | default | meaning |\n|---|---|---|---|\n";
  add_rows(fields, "", text);
  return text;
}

std::string ignored_line(const SchemaBase& schema) {
  return line_of("Accepted without effect: ", schema.ignored_keys());
}

std::string refused_line(const SchemaBase& schema) { return line_of("Refused unless empty: ", schema.refused_keys()); }

}  // namespace hctr
