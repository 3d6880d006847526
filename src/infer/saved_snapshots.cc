#include "infer/saved_snapshots.h"

#include <filesystem>
#include <system_error>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "formats/checkpoint/manifest.h"
#include "hctr/formats.h"
#include "infer/models_at_prefix.h"
#include "infer/run_ids.h"

namespace hctr {
namespace {

std::string list_of(const std::set<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += cat(text.empty() ? "" : ", ", number);
  return text;
}

/// The iterations of the models at a prefix.
std::set<int64_t> iterations_at(const std::string& prefix) {
  const fs::path path(prefix);
  const Snapshots found = snapshots_in(path.parent_path());
  const auto at = found.find((path.parent_path() / path.filename()).string());
  return at == found.end() ? std::set<int64_t>() : at->second;
}

/// Throws Error(io) that lists the models in nearby folders. `config_prefix`: the snapshot_prefix of the config, where
/// another model may be.
[[noreturn]] void fail_not_found(const std::string& given, const std::string& prefix,
                                 const std::string& config_prefix) {
  const fs::path path(given);
  Snapshots near = snapshots_in(fs::path(prefix).parent_path());
  if (fs::is_directory(path)) near.merge(snapshots_in(path));
  if (!config_prefix.empty()) near.merge(snapshots_in(fs::path(config_prefix).parent_path()));
  std::string there;
  for (const auto& [found, iterations] : near)
    there += cat("\n  there: --model ", found, ", iterations ", list_of(iterations));
  throw Error(Kind::io, cat("there is no model '", given, "'. Looked for:\n  a run folder: '",
                            (path / kSummary).string(), "'\n  a checkpoint: '", (path / kManifestName).string(),
                            "', or folders iteration_<n> of checkpoints\n  a snapshot_prefix: '", prefix,
                            "_dense_<n>.model'", there));
}

/// Splits "out/a@20" into "out/a" and 20, and a dense file's name into prefix and iteration. An @ must be followed by
/// digits alone.
std::pair<std::string, std::optional<int64_t>> split_iteration(const std::string& model) {
  if (const auto numbered = split_number(model, "@", "")) return *numbered;
  if (const auto dense_file = split_number(model, "_dense_", ".model")) return *dense_file;
  return {model, std::nullopt};
}

}  // namespace

std::optional<std::pair<std::string, int64_t>> split_number(std::string_view text, std::string_view mark,
                                                            std::string_view ending) {
  const size_t at = text.rfind(mark);
  if (at == text.npos || !text.ends_with(ending) || text.size() < at + mark.size() + ending.size()) return {};
  const std::string digits(text.substr(at + mark.size(), text.size() - at - mark.size() - ending.size()));
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != digits.npos) return {};
  return std::pair(std::string(text.substr(0, at)), std::stoll(digits));
}

Snapshots snapshots_in(const fs::path& folder) {
  Snapshots found;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end; at.increment(error)) {
    const auto model = split_number(at->path().filename().string(), "_dense_", ".model");
    if (model && !model->first.ends_with("_opt")) found[(folder / model->first).string()].insert(model->second);
  }
  return found;
}

std::pair<std::string, int64_t> find_snapshot(const std::string& model, const std::string& config_prefix) {
  auto [prefix, iteration] = split_iteration(model);
  std::set<int64_t> iterations = iterations_at(prefix);
  if (iterations.empty() && fs::is_directory(prefix)) {  // "out" means "out/", the prefix of most configs
    iterations = iterations_at((fs::path(prefix) / "").string());
    if (!iterations.empty()) prefix = (fs::path(prefix) / "").string();
  }
  if (iterations.empty()) fail_not_found(model, prefix, config_prefix);
  if (iteration && !iterations.contains(*iteration))
    throw Error(Kind::io,
                cat("no model of iteration ", *iteration, " at prefix '", prefix, "', which would be '",
                    formats::dense_model_name(prefix, *iteration), "'; there are iterations ", list_of(iterations)));
  return {prefix, iteration ? *iteration : newest_of_one_run(prefix)};
}

}  // namespace hctr
