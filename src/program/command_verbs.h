// Commands of a program whose options also work without them: "huge_ctr train FILE.json" is "huge_ctr --train
// FILE.json".
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hctr {

struct Verb {
  struct Option {
    std::string name;    ///< "--seed", the program's option
    std::string text{};  ///< replaces the option's help text, if this command needs a shorter one
  };
  struct Heading {
    std::string title;
    std::vector<Option> options;
  };
  std::string name, arguments;  ///< "train", "FILE.json"
  std::string text;             ///< one sentence
  std::vector<Heading> headings;
  std::vector<std::string> examples{};

  bool has(const std::string& option) const;
};

/// The output of "program --help", with a line for each command.
std::string program_help(const CLI::App&, const std::vector<Verb>&);
/// The help of all commands, followed by the same commands as options (--train).
std::string all_help(const CLI::App&, const std::vector<Verb>&);
/// The output of "program verb --help": the command's options, under headings.
std::string verb_help(const CLI::App&, const Verb&);

}  // namespace hctr
