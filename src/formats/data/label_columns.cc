#include "formats/data/label_columns.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "formats/data/text_values.h"

namespace hctr {

Misfit read_value(const Json& value, const Range& range, Positive& out) {
  const char* const expected = "the text of a positive label, an array of such texts, or {\"at_least\": number}";
  if (const Json& one = unwrapped(value); one.object()) {
    for (const auto& [key, inner] : *one.object())
      if (key != "at_least") {
        Misfit misfit("\"at_least\"");
        misfit.pointer = "/" + key;
        misfit.found = "\"" + key + "\"";
        return misfit;
      }
    const Json* number = one.find("at_least");
    if (!number) return expected;
    Misfit misfit = read_value(*number, range, out.at_least);
    if (misfit.empty()) return misfit;
    misfit.pointer = "/at_least";
    misfit.found = number->kind();
    return misfit;
  }
  Misfit misfit = read_value(value, range, out.texts);
  if (misfit.empty() && out.texts.empty()) return expected;
  if (!misfit.empty() && misfit.pointer.empty()) return expected;
  return misfit;
}

Json to_json(const Positive& positive) {
  if (positive.at_least) return Json(Json::Object{{"at_least", *positive.at_least}});
  return positive.texts.empty() ? Json() : to_json(positive.texts);
}

Schema<LabelColumn> label_column_schema() {
  return Schema<LabelColumn>("label column")
      .short_form("column")
      .need("column", &LabelColumn::column, "the column")
      .opt("positive", &LabelColumn::positive,
           "the text, or a list of texts, that means label 1; or {\"at_least\": number}, the lowest number that "
           "means label 1. Everything else is label 0. Default: the label is the number in the column")
      .opt("number_format", &LabelColumn::number_format, kNumberFormatHelp)
      .opt("unit", &LabelColumn::unit, kUnitHelp)
      .together([](LabelColumn& label, const std::string& pointer, Problems& problems) {
        const auto& texts = label.positive.texts;
        if (std::find(texts.begin(), texts.end(), "") != texts.end())
          problems.error(pointer + "/positive", "an empty cell is a missing label, not a positive one");
        check_notation(label.notation(), pointer, problems);
        if (!texts.empty() && label.notation().given())
          problems.error(pointer + (label.unit.empty() ? "/number_format" : "/unit"),
                         "the texts of \"positive\" are compared literally, not as numbers");
      });
}

double label_of(const LabelColumn& label, double value) {
  const bool compared = label.positive.at_least && std::isfinite(value);
  return compared ? static_cast<double>(value >= *label.positive.at_least) : value;
}

bool label_of(const LabelColumn& label, std::string_view value, double& number) {
  if (const auto& texts = label.positive.texts; !texts.empty()) {
    number = std::find(texts.begin(), texts.end(), value) != texts.end() ? 1 : 0;
    return true;
  }
  if (label.unit.empty() && !label.number_format ? !read_number(value, number)
                                                 : !read_number(label.notation(), value, number))
    return false;
  number = label_of(label, number);
  return true;
}

std::string describe(const Positive& positive) {
  if (positive.at_least) return cat("at least ", *positive.at_least);
  std::string text;
  for (const std::string& one : positive.texts) text += cat(text.empty() ? "'" : " or '", one, "'");
  return text;
}

}  // namespace hctr
