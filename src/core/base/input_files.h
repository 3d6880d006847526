// Outputs that a user names: none may replace a file that the same command reads.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/base/expect.h"
#include "core/base/files.h"

namespace hctr {

/// Throws if `out` is one of `inputs`: by the same path, another spelling of it, a symbolic or a hard link. An input
/// that is a folder stands for all files below it. `named_by`: the option or field, for the message. Inputs that do not
/// exist are ignored; their reader reports them. Errors: Error(kind).
void expect_no_input(const fs::path& out, std::string_view named_by, const std::vector<fs::path>& inputs,
                     Kind kind = Kind::usage);
/// The same; `inputs` is not called where `out` does not exist, as it can take long to list a data set.
void expect_no_input(const fs::path& out, std::string_view named_by,
                     const std::function<std::vector<fs::path>()>& inputs, Kind kind = Kind::usage);

/// Throws where one of `inputs` lies in `folder` under a name that `is_output` accepts. For programs that write many
/// files. Errors: Error(kind).
void expect_no_input_in(const fs::path& folder, std::string_view named_by, const std::vector<fs::path>& inputs,
                        const std::function<bool(const std::string& name)>& is_output, Kind kind = Kind::usage);

/// Whether `name` is "<start><number><end>", as "train.0.data".
bool is_numbered(std::string_view name, std::string_view start, std::string_view end);

}  // namespace hctr
