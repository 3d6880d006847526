#include "base/input_files.h"

#include <string>
#include <system_error>

namespace hctr {
namespace {

[[noreturn]] void fail_input(const fs::path& out, std::string_view named_by, const fs::path& input, Kind kind) {
  const std::string other = out == input ? "" : cat(" (as '", input.string(), "')");
  throw Error(kind, cat(named_by, " '", out.string(), "' is a file that this command reads", other,
                        ": writing there would replace it; name another place"));
}

}  // namespace

void expect_no_input(const fs::path& out, std::string_view named_by, const std::vector<fs::path>& inputs, Kind kind) {
  std::error_code none;
  if (out.empty() || !fs::exists(out, none)) return;
  const auto same = [&](const fs::path& file) { return fs::equivalent(out, file, none); };
  for (const fs::path& input : inputs) {
    if (input.empty()) continue;
    if (same(input)) fail_input(out, named_by, input, kind);
    if (!fs::is_directory(input, none)) continue;
    for (fs::recursive_directory_iterator at(input, none), end; !none && at != end; at.increment(none)) {
      std::error_code ignored;
      if (fs::equivalent(out, at->path(), ignored)) fail_input(out, named_by, at->path(), kind);
    }
  }
}

void expect_no_input(const fs::path& out, std::string_view named_by,
                     const std::function<std::vector<fs::path>()>& inputs, Kind kind) {
  std::error_code none;
  if (!out.empty() && fs::exists(out, none)) expect_no_input(out, named_by, inputs(), kind);
}

void expect_no_input_in(const fs::path& folder, std::string_view named_by, const std::vector<fs::path>& inputs,
                        const std::function<bool(const std::string& name)>& is_output) {
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; !none && at != end; at.increment(none))
    if (is_output(at->path().filename().string())) expect_no_input(at->path(), named_by, inputs);
}

bool is_numbered(std::string_view name, std::string_view start, std::string_view end) {
  if (name.size() <= start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end)) return false;
  const std::string_view digits = name.substr(start.size(), name.size() - start.size() - end.size());
  return digits.find_first_not_of("0123456789") == digits.npos;
}

}  // namespace hctr
