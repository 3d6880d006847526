// Finds saved model files by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hctr {

/// Splits "<stem><mark><number><ending>" into stem and number, at most 18 digits. None for any other text. Written by
/// hand, because std::regex would add seconds of compile time.
std::optional<std::pair<std::string, int64_t>> split_number(std::string_view text, std::string_view mark,
                                                            std::string_view ending);

/// Maps a prefix to the iterations of its models.
using Snapshots = std::map<std::string, std::set<int64_t>>;
/// The models in a folder.
Snapshots snapshots_in(const std::filesystem::path& folder);

/// Finds the prefix and iteration of the model files that `model` names: PREFIX, PREFIX@ITERATION, or the name of a
/// dense model file. `config_prefix`: the snapshot_prefix of the config, where another model may be. Errors: Error(io)
/// if there are no such files, listing the models in nearby folders.
std::pair<std::string, int64_t> find_snapshot(const std::string& model, const std::string& config_prefix);

}  // namespace hctr
