#include "program/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "config/problems.h"
#include "core/base/build_info.h"
#include "core/base/current_error.h"
#include "program/command_pages.h"
#include "program/process_end.h"
#include "program/stack_limit.h"
#include "program/standard_streams.h"
#include "program/terminal.h"

namespace hctr {
namespace {

/// Checks that a value is one of the words. The error message lists the words and suggests the nearest one.
CLI::Validator check_word(const std::vector<std::string>& words) {
  std::string listed;  // for --help
  for (const std::string& word : words) listed += cat(listed.empty() ? "{" : ",", word);
  return CLI::Validator(
      [words](const std::string& word) {
        if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
        return cat("expected ", one_of(words), ", found \"", word, "\"", did_you_mean(word, words));
      },
      listed + "}");
}

/// Removes a plus sign and leading zeros: CLI11 would read 010 as octal.
std::string plain_digits(std::string_view text) {
  const bool negative = text.starts_with('-'), positive = text.starts_with('+');
  if (positive && (text.size() < 2 || text[1] < '0' || text[1] > '9')) return std::string(text);
  if (negative || positive) text.remove_prefix(1);
  while (text.size() > 1 && text[0] == '0') text.remove_prefix(1);
  return (negative ? "-" : "") + std::string(text);
}

/// Checks that a value is a decimal number that fits T: CLI11 would clamp it, and accept hexadecimal numbers and "nan".
template <class T>
CLI::Validator check_number() {
  return CLI::Validator(
      [](std::string& word) {
        std::string plain = word;
        if constexpr (std::is_integral_v<T>) {
          plain = plain_digits(word);
        } else if (plain.size() > 1 && plain[0] == '+' && plain[1] != '-') {
          plain.erase(0, 1);
        }
        T value{};
        const char* const last = plain.data() + plain.size();
        const auto [end, error] = std::from_chars(plain.data(), last, value);
        const bool good = end == last && error == std::errc();
        if constexpr (std::is_integral_v<T>) {
          if (!good)
            return cat("expected a whole number from ", std::numeric_limits<T>::min(), " to ",
                       std::numeric_limits<T>::max(), ", found \"", word, "\"");
        } else if (!good || !std::isfinite(value)) {
          return cat("expected a number, found \"", word, "\"");
        }
        word = plain;
        return std::string();
      },
      "");
}

/// Checks that a number is above 0 or, with `may_be_zero`, at least 0.
CLI::Validator check_sign(bool may_be_zero) {
  return CLI::Validator(
      [may_be_zero](const std::string& word) {
        double value = 0;
        std::from_chars(word.data(), word.data() + word.size(), value);
        if (value > 0 || (may_be_zero && value == 0)) return std::string();
        return cat("expected a number ", may_be_zero ? "of at least 0" : "above 0", ", found ", word);
      },
      may_be_zero ? "NONNEGATIVE" : "POSITIVE");
}

/// An option with values of type T.
template <class T, class Values>
CommandOption add_number(CLI::App& app, const std::string& name, Values& values, const std::string& text) {
  CLI::Option* const option = app.add_option(name, values, text);
  option->transform(check_number<T>());
  return CommandOption(option);
}

/// Returns "; did you mean \"--train\"?" for the first argument that is not an option of a program or of its
/// subcommands.
std::string option_meant(const CLI::App& app) {
  std::vector<std::string> names;
  const auto add_names = [&](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  };
  add_names(app);
  for (const CLI::App* command : app.get_subcommands(nullptr)) add_names(*command);
  for (const std::string& given : app.remaining(true))
    if (given.starts_with("--")) return did_you_mean(given.substr(0, given.find('=')), names);
  return "";
}

}  // namespace

CommandOption CommandOption::required() {
  option_->required();
  return *this;
}
CommandOption CommandOption::show_default() {
  option_->capture_default_str();
  return *this;
}
CommandOption CommandOption::comma_separated() {
  option_->delimiter(',');
  return *this;
}
CommandOption CommandOption::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}
CommandOption CommandOption::existing_file() {
  option_->check(CLI::ExistingFile);
  return *this;
}
CommandOption CommandOption::positive() {
  option_->check(check_sign(false));
  return *this;
}
CommandOption CommandOption::non_negative() {
  option_->check(check_sign(true));
  return *this;
}
CommandOption CommandOption::range(int64_t low, int64_t high) {
  option_->check(CLI::Range(low, high));
  return *this;
}
CommandOption CommandOption::positive_number() {
  option_->check(check_sign(false));
  return *this;
}
CommandOption CommandOption::real_range(double low, double high) {
  option_->check(CLI::Range(low, high));
  return *this;
}
CommandOption CommandOption::one_of(const std::vector<std::string>& words) {
  option_->check(check_word(words));
  return *this;
}
CommandOption CommandOption::one_of(std::initializer_list<int> numbers) {
  option_->check(CLI::IsMember(std::vector<int>(numbers)));
  return *this;
}

CommandLine::CommandLine(const std::string& program, const std::string& description, const std::string& footer)
    : app_(std::make_shared<CLI::App>(description, program)) {
  app_->footer(footer);
  app_->set_version_flag("--version", version_text(program), "Print the version, commit and libraries of this build");
  CLI::App* const app = app_.get();  // the callback prints the help after all options have been added
  const Verbs* const verbs = verbs_.get();
  app->add_option_function<std::string>(
         "--completion",
         [app, verbs](const std::string& shell) {
           throw CLI::CallForVersion(completion_script(*app, verbs->all, shell), 0);
         },
         "Print a script that completes these options in a shell")
      ->check(check_word({"bash", "zsh"}));
  app->add_flag_callback(
      "--man", [app, verbs] { throw CLI::CallForVersion(man_page(*app, verbs->all), 0); },
      "Print this help as a man page");
}

CommandOption CommandLine::add_option(const std::string& name, int& value, const std::string& text) {
  return add_number<int>(*app_, name, value, text);
}
CommandOption CommandLine::add_option(const std::string& name, int64_t& value, const std::string& text) {
  return add_number<int64_t>(*app_, name, value, text);
}
CommandOption CommandLine::add_option(const std::string& name, uint64_t& value, const std::string& text) {
  return add_number<uint64_t>(*app_, name, value, text);
}
CommandOption CommandLine::add_option(const std::string& name, double& value, const std::string& text) {
  return add_number<double>(*app_, name, value, text);
}
CommandOption CommandLine::add_option(const std::string& name, std::string& value, const std::string& text) {
  return CommandOption(app_->add_option(name, value, text));
}
CommandOption CommandLine::add_option(const std::string& name, std::filesystem::path& value, const std::string& text) {
  return CommandOption(app_->add_option(name, value, text));
}
CommandOption CommandLine::add_option(const std::string& name, std::optional<int>& value, const std::string& text) {
  return add_number<int>(*app_, name, value, text);
}
CommandOption CommandLine::add_option(const std::string& name, std::optional<int64_t>& value, const std::string& text) {
  return add_number<int64_t>(*app_, name, value, text);
}
CommandOption CommandLine::add_option(const std::string& name, std::vector<int>& values, const std::string& text) {
  return add_number<int>(*app_, name, values, text);
}
CommandOption CommandLine::add_option(const std::string& name, std::vector<int64_t>& values, const std::string& text) {
  return add_number<int64_t>(*app_, name, values, text);
}
CommandOption CommandLine::add_option(const std::string& name, std::vector<std::string>& values,
                                      const std::string& text) {
  return CommandOption(app_->add_option(name, values, text));
}
void CommandLine::add_flag(const std::string& name, bool& value, const std::string& text) {
  // CLI11 would accept any number as a flag's value
  app_->add_flag(name, value, text)->check([](const std::string& word) {
    return word == "true" || word == "false" ? std::string()
                                             : cat("expected no value, or true or false, found \"", word, "\"");
  });
}
void CommandLine::add_choice(const std::string& name, const std::vector<std::string>& choices,
                             const std::function<void(const std::string&)>& chosen, const std::string& text) {
  app_->add_option_function<std::string>(name, chosen, text)->check(check_word(choices))->option_text(one_of(choices));
}

void CommandLine::set_verbs(std::vector<Verb> verbs) {
  verbs_->all = std::move(verbs);
  app_->add_flag_callback(
      "--help-all",
      [app = app_.get(), of = verbs_.get()] {
        std::string text = all_help(*app, of->all);
        text.pop_back();
        throw CLI::CallForVersion(text, 0);
      },
      "Print the help of all commands");
}
const Verb* CommandLine::verb() const { return verbs_->given; }
const std::vector<Verb>& CommandLine::verbs() const { return verbs_->all; }

CommandLine CommandLine::add_subcommand(const std::string& name, const std::string& text) {
  app_->require_subcommand(1);
  return CommandLine(std::shared_ptr<CLI::App>(app_, app_->add_subcommand(name, text)));
}
bool CommandLine::parsed() const { return app_->parsed(); }
size_t CommandLine::count(const std::string& name) const { return app_->count(name); }
std::vector<std::string> CommandLine::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0 && !option->get_lnames().empty()) names.push_back("--" + option->get_lnames().front());
  return names;
}

bool CommandLine::parse(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  if (argc > 1)
    if (const auto verb = std::ranges::find(verbs_->all, std::string(argv[1]), &Verb::name);
        verb != verbs_->all.end()) {
      verbs_->given = &*verb;
      words.erase(words.begin() + 1);
    }
  const std::string help = cat(app_->get_name(), verbs_->given ? " " + verbs_->given->name : "", " --help");
  try {
    app_->parse(static_cast<int>(words.size()), words.data());
    return true;
  } catch (const CLI::CallForHelp&) {
    print(verbs_->given         ? verb_help(*app_, *verbs_->given)
          : verbs_->all.empty() ? app_->help()
                                : program_help(*app_, verbs_->all));
  } catch (const CLI::CallForVersion& version) {
    print(cat(version.what(), "\n"));
  } catch (const CLI::ExtrasError& error) {
    throw Error(Kind::usage, cat(error.what(), option_meant(*app_), "; ", help, " lists the options"));
  } catch (const CLI::ParseError& error) {
    throw Error(Kind::usage, cat(error.what(), "; ", help, " lists the options"));
  }
  return false;
}

int run_program(const std::function<int()>& work) {
  open_closed_streams();
  try {
    raise_stack_limit();
    const int code = work();
    if (code == 0) flush_standard_output();
    return code;
  } catch (...) {
    const Error error = current_error();
    print_error(error);
    return exit_code(error.kind());
  }
}

int run_tool(CommandLine& line, int argc, char** argv, const std::function<void()>& work) {
  return run_program([&] {
    if (line.parse(argc, argv)) work();
    return 0;
  });
}

}  // namespace hctr
