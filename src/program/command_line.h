// Command lines of the programs. Only two files include the parser (CLI11), so that not every main() compiles its
// templates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/command_verbs.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hctr {

/// One option of a command line. Its methods add constraints and return the option.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}
  CommandOption required();
  CommandOption show_default();     ///< --help shows the present value of the variable
  CommandOption comma_separated();  ///< one argument may hold several values
  CommandOption type_name(const std::string& name);
  CommandOption existing_file();
  CommandOption positive();
  CommandOption positive_number();  ///< the number may be a fraction
  CommandOption non_negative();
  CommandOption range(int64_t low, int64_t high);
  CommandOption real_range(double low, double high);
  CommandOption one_of(const std::vector<std::string>& words);
  CommandOption one_of(std::initializer_list<int> numbers);

 private:
  CLI::Option* option_;
};

/// The options of a program, or of one of its subcommands. Copies refer to the same command line.
///
/// Names are "--long", "--long,--other" or, for positional arguments, "name". Variables must outlive parse().
class CommandLine {
 public:
  /// `program`: its name, for --help and --version.
  CommandLine(const std::string& program, const std::string& description, const std::string& footer);

  CommandOption add_option(const std::string& name, int& value, const std::string& text);
  CommandOption add_option(const std::string& name, int64_t& value, const std::string& text);
  CommandOption add_option(const std::string& name, uint64_t& value, const std::string& text);
  CommandOption add_option(const std::string& name, double& value, const std::string& text);
  CommandOption add_option(const std::string& name, std::string& value, const std::string& text);
  CommandOption add_option(const std::string& name, std::filesystem::path& value, const std::string& text);
  CommandOption add_option(const std::string& name, std::optional<int>& value, const std::string& text);
  CommandOption add_option(const std::string& name, std::optional<int64_t>& value, const std::string& text);
  CommandOption add_option(const std::string& name, std::vector<int>& values, const std::string& text);
  CommandOption add_option(const std::string& name, std::vector<int64_t>& values, const std::string& text);
  CommandOption add_option(const std::string& name, std::vector<std::string>& values, const std::string& text);
  void add_flag(const std::string& name, bool& value, const std::string& text);
  /// Adds an option whose value is one of these words. Each word stands for a value of the enumeration E.
  template <class E>
  void add_word(const std::string& name, E& value, const std::map<std::string, E>& words, const std::string& text) {
    std::vector<std::string> choices;
    for (const auto& [word, meaning] : words) choices.push_back(word);
    add_choice(name, choices, [&value, words](const std::string& word) { value = words.at(word); }, text);
  }

  /// Adds commands. A command's options are options of the program itself, and also work without the command. parse()
  /// accepts the name of a command as the first word. If --help follows, parse() prints the command's page.
  void set_verbs(std::vector<Verb> verbs);
  /// The given command; null: none.
  const Verb* verb() const;
  const std::vector<Verb>& verbs() const;
  /// Adds a subcommand, "program name ...". One subcommand must be given.
  CommandLine add_subcommand(const std::string& name, const std::string& text);
  /// Whether this subcommand was given.
  bool parsed() const;
  /// How often the option was given.
  size_t count(const std::string& name) const;
  /// The given options, by their first names.
  std::vector<std::string> given() const;

  /// Parses the command line and fills the variables. Returns false after printing --help, --version, --completion or
  /// --man. Errors: Error(usage).
  bool parse(int argc, char** argv);

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}
  void add_choice(const std::string& name, const std::vector<std::string>& choices,
                  const std::function<void(const std::string&)>& chosen, const std::string& text);

  struct Verbs {
    std::vector<Verb> all;
    const Verb* given = nullptr;
  };
  std::shared_ptr<CLI::App> app_;  // shared by a program and its subcommands
  std::shared_ptr<Verbs> verbs_ = std::make_shared<Verbs>();
};

/// Calls work(), reports an exception on the standard error stream, and returns the exit code (hctr/error.h). Closed
/// standard streams are opened as /dev/null. Output that could not be written is an Error(io).
int run_program(const std::function<int()>& work);

/// The main() of a tool: parses the command line and calls work(). Returns the exit code.
int run_tool(CommandLine& line, int argc, char** argv, const std::function<void()>& work);

}  // namespace hctr
