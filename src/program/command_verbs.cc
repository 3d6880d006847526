#include "program/command_verbs.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr size_t kTextColumn = 30, kWidth = 100;

/// Formats `text` as a column to the right of `left`, in lines of kWidth characters.
std::string entry(const std::string& left, const std::string& text) {
  std::string out = "  " + left;
  size_t column = out.size();
  const auto begin_line = [&] {
    out += "\n" + std::string(kTextColumn, ' ');
    column = kTextColumn;
  };
  if (column + 2 > kTextColumn)
    begin_line();
  else {
    out += std::string(kTextColumn - column, ' ');
    column = kTextColumn;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (column > kTextColumn && column + 1 + end - at > kWidth) begin_line();
    if (column > kTextColumn) {
      out += ' ';
      ++column;
    }
    out += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out + "\n";
}

/// How an option is typed, such as "--device {auto,cpu,cuda}", without the type and bounds of its value.
std::string left_of(const CLI::Option& option) {
  std::string left;
  for (const std::string& name : option.get_snames()) left += cat(left.empty() ? "" : ", ", "-", name);
  for (const std::string& name : option.get_lnames()) left += cat(left.empty() ? "" : ", ", "--", name);
  if (option.get_items_expected_max() == 0) return left;
  const std::string type = option.get_type_name();
  const size_t words = type.find('{'), bounds = type.find(':');
  std::string value = words != type.npos ? type.substr(words, type.find('}') - words + 1) : type.substr(0, bounds);
  if (value == "INT" || value == "UINT") value = "N";
  if (value == "TEXT") value = "WORD";
  return cat(left, " ", value, option.get_items_expected_max() > 1 ? " ..." : "");
}

std::string entry(const CLI::Option& option, const std::string& text) {
  const std::string& value = option.get_default_str();
  return entry(left_of(option),
               cat(text.empty() ? option.get_description() : text, value.empty() ? "" : cat(" [", value, "]")));
}

}  // namespace

bool Verb::has(const std::string& option) const {
  return std::ranges::any_of(headings, [&](const Heading& heading) {
    return std::ranges::any_of(heading.options, [&](const Option& one) { return one.name == option; });
  });
}

std::string program_help(const CLI::App& app, const std::vector<Verb>& verbs) {
  const std::string& program = app.get_name();
  std::string text = cat(app.get_description(), "\n\nUsage: ", program, " COMMAND ...\n       ", program,
                         " COMMAND --help: the options of a command\n\nCommands:\n");
  for (const Verb& verb : verbs) text += entry(cat(verb.name, " ", verb.arguments), verb.text);
  text += "\nOptions:\n";
  for (const CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() == 0 || option->check_lname("completion"))
      if (std::ranges::none_of(verbs, [&](const Verb& verb) { return verb.has("--" + option->get_lnames().at(0)); }))
        text += entry(*option, "");
  return cat(text, "\n", app.get_footer(), "\n");
}

std::string all_help(const CLI::App& app, const std::vector<Verb>& verbs) {
  std::string text = program_help(app, verbs);
  for (const Verb& verb : verbs) text += cat("\n", verb_help(app, verb));
  text += "\nThe commands as options:\n";
  for (const Verb& verb : verbs) {
    if (const CLI::Option* option = app.get_option_no_throw("--" + verb.name))
      text += entry(*option, option->get_description());
  }
  return text;
}

std::string verb_help(const CLI::App& app, const Verb& verb) {
  std::string text = cat(verb.text, "\n\nUsage: ", app.get_name(), " ", verb.name, " ", verb.arguments, " [OPTIONS]\n");
  for (const Verb::Heading& heading : verb.headings) {
    text += cat("\n", heading.title, ":\n");
    for (const Verb::Option& one : heading.options) text += entry(*app.get_option(one.name), one.text);
  }
  if (!verb.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : verb.examples) text += cat("  ", example, "\n");
  return text;
}

}  // namespace hctr
