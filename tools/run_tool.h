// What the main() of every tool does around its work: parse, run, and turn what goes wrong into a message and an exit
// code.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"

namespace hctr {

/// Parses the command line and calls work(). Returns the exit code (hctr/error.h).
template <class Work>
int run_tool(CLI::App& app, int argc, char** argv, const Work& work) {
  try {
    app.parse(argc, argv);
    work();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code(Kind::usage);
  } catch (const Error& error) {
    std::fprintf(stderr, "error (%s): %s\n", std::string(kind_name(error.kind())).c_str(), error.what());
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error (bug): %s\n", error.what());
    return exit_code(Kind::bug);
  }
  return 0;
}

}  // namespace hctr
