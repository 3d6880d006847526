// What lies where models are: which folders are models and versions, and whether their files have changed.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/files.h"

namespace hctr::serve {

/// Whether the folder has folders of models in it.
bool is_repository(const fs::path& folder);
/// Whether it has a config.pbtxt, or a folder whose name is a number and that holds a model.
bool is_model_folder(const fs::path& folder);
/// The folders whose names are numbers.
std::map<int64_t, std::string> versions_in(const fs::path& folder);

/// The name for a model that has none: the last part of its path.
std::string name_of_model(const std::string& path);
/// Errors: Error(config) for a name that no request could have.
void expect_model_name(const std::string& name, const std::string& path);

/// Changes when a file at this path, or directly in a folder at this path, is written anew or replaced.
std::string state_of_path(const fs::path&);
/// The same for the files of a model; with `versioned`, for its config and all of its versions.
std::string state_of_model(const fs::path&, bool versioned);

}  // namespace hctr::serve
