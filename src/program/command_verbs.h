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
    std::string text{};  ///< replaces the option's own text if this command needs less
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

/// The output of "program --help": a line for each command.
std::string program_help(const CLI::App&, const std::vector<Verb>&);
/// The pages of all commands, and the commands as options.
std::string all_help(const CLI::App&, const std::vector<Verb>&);
/// The output of "program verb --help": its options under their headings.
std::string verb_help(const CLI::App&, const Verb&);

}  // namespace hctr
