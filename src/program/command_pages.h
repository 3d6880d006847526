// Pages made of a command line's options: completion for shells, and a man page.
#pragma once

#include <string>
#include <vector>

#include "program/command_verbs.h"

namespace CLI {
class App;
}

namespace hctr {

/// A script that completes the options of the program, their words and files. `shell`: "bash" or "zsh".
std::string completion_script(const CLI::App&, const std::vector<Verb>&, const std::string& shell);
/// The page of section 1, in the language of man: the texts of --help.
std::string man_page(const CLI::App&, const std::vector<Verb>&);

}  // namespace hctr
