// Checks that no output file named by the user replaces an input file of the same command.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/base/expect.h"
#include "core/base/files.h"

namespace hctr {

/// Throws if `out` and one of `inputs` are the same file, also through another spelling, a symbolic link or a hard
/// link. An input folder stands for all files below it. `named_by`: the option or field that names `out`, for the
/// message. Missing inputs are ignored; their reader reports them. Errors: Error(kind).
void expect_no_input(const fs::path& out, std::string_view named_by, const std::vector<fs::path>& inputs,
                     Kind kind = Kind::usage);
/// Like the function above, but calls `inputs` only if `out` exists, because listing the files of a data set can take
/// long.
void expect_no_input(const fs::path& out, std::string_view named_by,
                     const std::function<std::vector<fs::path>()>& inputs, Kind kind = Kind::usage);

/// Throws if one of `inputs` lies in `folder` under a name that `is_output` accepts. For programs that write many
/// files. Errors: Error(kind).
void expect_no_input_in(const fs::path& folder, std::string_view named_by, const std::vector<fs::path>& inputs,
                        const std::function<bool(const std::string& name)>& is_output, Kind kind = Kind::usage);

/// Whether `name` is "<start><digits><end>", such as "train.0.data".
bool is_numbered(std::string_view name, std::string_view start, std::string_view end);

}  // namespace hctr
