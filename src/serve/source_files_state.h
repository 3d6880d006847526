// Inspects model folders: which folders are models and versions, and whether their files have changed.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/files.h"

namespace hctr::serve {

/// Whether the folder contains model folders.
bool is_repository(const fs::path& folder);
/// Whether the folder has a config.pbtxt, or a subfolder whose name is a number.
bool is_model_folder(const fs::path& folder);
/// The subfolders whose names are numbers, by number.
std::map<int64_t, std::string> versions_in(const fs::path& folder);

/// The default name of a model: the last component of its path.
std::string name_of_model(const std::string& path);
/// Errors: Error(config) for a name that requests cannot contain.
void expect_model_name(const std::string& name, const std::string& path);

/// Returns a text that changes when a file at this path, or directly in a folder at this path, is rewritten or
/// replaced.
std::string state_of_path(const fs::path&);
/// Like state_of_path(), for all files of a model; with `versioned`, for its config and all of its versions.
std::string state_of_model(const fs::path&, bool versioned);

}  // namespace hctr::serve
