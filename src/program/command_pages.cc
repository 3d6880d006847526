#include "program/command_pages.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "core/base/build_info.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

/// An option, as described in the generated pages.
struct OptionPage {
  std::vector<std::string> names;  // "--threads"; empty: a positional argument
  std::string value, text;         // value: placeholder of the value in --help; empty for a flag
  std::vector<std::string> words;  // valid values; empty: any
};

/// The valid words of an option. CLI11 has them as "{a,b}" in the name of the option's type.
std::vector<std::string> words_in(const std::string& type) {
  const size_t begin = type.find('{'), end = type.find('}');
  std::vector<std::string> words;
  if (begin == type.npos || end == type.npos) return words;
  for (size_t at = begin + 1; at <= end;) {
    const size_t stop = std::min(type.find(',', at), end);
    words.push_back(type.substr(at, stop - at));
    at = stop + 1;
  }
  return words;
}

std::vector<OptionPage> pages_of(const CLI::App& app) {
  std::vector<OptionPage> pages;
  for (const CLI::Option* option : app.get_options()) {
    OptionPage page;
    for (const std::string& name : option->get_snames()) page.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) page.names.push_back("--" + name);
    if (option->get_items_expected_max() > 0) page.value = option->get_type_name();
    page.words = words_in(page.value);
    page.text = option->get_description();
    if (page.names.empty()) page.value = option->get_name(true);
    pages.push_back(std::move(page));
  }
  return pages;
}

/// The options of the program and of its commands; each name once.
std::vector<OptionPage> all_pages(const CLI::App& app) {
  std::vector<OptionPage> pages = pages_of(app);
  for (const CLI::App* command : app.get_subcommands(nullptr))
    for (OptionPage& page : pages_of(*command)) {
      const bool known =
          std::any_of(pages.begin(), pages.end(), [&](const OptionPage& other) { return other.names == page.names; });
      if (!known && !page.names.empty()) pages.push_back(std::move(page));
    }
  return pages;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> commands_of(const CLI::App& app, const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.name);
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::string bash_script(const CLI::App& app, const std::vector<Verb>& verbs) {
  const std::string& program = app.get_name();
  std::string cases, names;
  for (const OptionPage& page : all_pages(app)) {
    if (page.names.empty()) continue;
    for (const std::string& name : page.names) names += (names.empty() ? "" : " ") + name;
    if (!page.words.empty())
      cases += cat("    ", joined(page.names, "|"), ") COMPREPLY=($(compgen -W \"", joined(page.words, " "),
                   "\" -- \"$word\")); return ;;\n");
  }
  const std::string commands = joined(commands_of(app, verbs), " ");
  return cat("# Completion of ", program, " for bash, made by ", program, " --completion bash\n_", program, "() {\n",
             "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n",
             "  case $before in\n    \"\") ;;\n", cases,
             "  esac\n  if [[ $word == -* ]]; then\n    COMPREPLY=($(compgen -W \"", names, "\" -- \"$word\"))\n",
             commands.empty() ? "" : "  elif ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W \"", commands,
             commands.empty() ? "" : "\" -- \"$word\"))\n",
             "  else\n    COMPREPLY=($(compgen -f -- \"$word\"))\n  fi\n}\ncomplete -o filenames -F _", program, " ",
             program, "\n");
}

/// Quotes a text for zsh's _arguments: single quotes, with escaped brackets and colons.
std::string in_zsh(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_script(const CLI::App& app, const std::vector<Verb>& verbs) {
  const std::string& program = app.get_name();
  std::string lines;
  for (const OptionPage& page : all_pages(app))
    for (const std::string& name : page.names) {
      lines += cat(" \\\n  '*", name, "[", in_zsh(page.text), "]");
      if (!page.value.empty())
        lines += page.words.empty() ? std::string(":value:_files") : cat(":word:(", joined(page.words, " "), ")");
      lines += "'";
    }
  const std::vector<std::string> commands = commands_of(app, verbs);
  if (!commands.empty()) lines += cat(" \\\n  '1:command:(", joined(commands, " "), ")'");
  return cat("#compdef ", program, "\n# Completion of ", program, " for zsh, made by ", program,
             " --completion zsh\n_arguments -s", lines, " \\\n  '*:file:_files'\n");
}

/// Escapes a text for a man page, so that no line is a command.
std::string in_man(const std::string& text) {
  std::string out;
  bool starts = true;
  for (const char c : text) {
    if (starts && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    starts = c == '\n';
  }
  return out;
}

std::string man_options(const CLI::App& app) {
  std::string text;
  for (OptionPage& page : pages_of(app)) {
    text += ".TP\n";
    for (size_t i = 0; i < page.names.size(); ++i)
      text += cat(i > 0 ? ", " : "", "\\fB", in_man(page.names[i]), "\\fR");
    if (!page.words.empty()) page.value = joined(page.words, "|");
    if (!page.value.empty()) text += cat(page.names.empty() ? "" : " ", "\\fI", in_man(page.value), "\\fR");
    text += "\n" + in_man(page.text) + "\n";
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::vector<Verb>& verbs, const std::string& shell) {
  return shell == "zsh" ? zsh_script(app, verbs) : bash_script(app, verbs);
}

std::string man_page(const CLI::App& app, const std::vector<Verb>& verbs) {
  const std::string& program = app.get_name();
  std::string capitals = program;
  std::transform(capitals.begin(), capitals.end(), capitals.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string text =
      cat(".TH ", capitals, " 1 \"\" \"huge_ctr ", version(), "\" \"User Commands\"\n.SH NAME\n", in_man(program),
          " \\- ", in_man(app.get_description()), "\n.SH SYNOPSIS\n\\fB", in_man(program), "\\fR [options]\n");
  for (const Verb& verb : verbs) {
    text += cat(".SH COMMAND ", in_man(verb.name), " ", in_man(verb.arguments), "\n", in_man(verb.text), "\n");
    for (const Verb::Heading& heading : verb.headings) {
      text += cat(".TP\n", in_man(heading.title), "\n");
      for (size_t i = 0; i < heading.options.size(); ++i)
        text += cat(i > 0 ? ", " : "", "\\fB", in_man(heading.options[i].name), "\\fR");
      text += "\n";
    }
  }
  text += cat(".SH OPTIONS\n", man_options(app));
  for (const CLI::App* command : app.get_subcommands(nullptr))
    text += cat(".SH COMMAND ", in_man(command->get_name()), "\n", in_man(command->get_description()), "\n",
                man_options(*command));
  if (!app.get_footer().empty()) text += cat(".SH NOTES\n.nf\n", in_man(app.get_footer()), "\n.fi\n");
  return text;
}

}  // namespace hctr
