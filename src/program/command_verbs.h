// Commands of a program whose options also stand without them: "huge_ctr train FILE.json" is "huge_ctr --train
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
    std::string name;    ///< "--seed", as the program has it
    std::string text{};  ///< instead of the option's own, where that says more than this command needs
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

/// What "program --help" prints: a line for each command.
std::string program_help(const CLI::App&, const std::vector<Verb>&);
/// Both for all commands, and the commands as options.
std::string all_help(const CLI::App&, const std::vector<Verb>&);
/// What "program verb --help" prints: its options under their headings.
std::string verb_help(const CLI::App&, const Verb&);

}  // namespace hctr
