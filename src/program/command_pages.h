// Generates pages from a command line's options: shell completion, and a man page.
#pragma once

#include <string>
#include <vector>

#include "program/command_verbs.h"

namespace CLI {
class App;
}

namespace hctr {

/// A completion script for the program's options, their words, and files. `shell`: "bash" or "zsh".
std::string completion_script(const CLI::App&, const std::vector<Verb>&, const std::string& shell);
/// The man page (section 1) in man's markup, made from the texts of --help.
std::string man_page(const CLI::App&, const std::vector<Verb>&);

}  // namespace hctr
