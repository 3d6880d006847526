#include "formats/data/numbering.h"

#include <filesystem>
#include <optional>

#include "config/checked_json.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

namespace fs = std::filesystem;

/// The path at which preprocess writes preprocess.json when it writes the data at `source`. Empty if preprocess never
/// writes data with the name of `source`. Does not check that the file exists.
std::optional<fs::path> description_of(const fs::path& source) {
  const fs::path file = source.filename(), folder = source.parent_path();
  for (const char* name : {"train.txt", "val.txt", "train.bin", "val.bin"})
    if (file == name) return folder / "preprocess.json";
  if (file == "_file_list.txt" && (folder.filename() == "train" || folder.filename() == "val"))
    return folder.parent_path() / "preprocess.json";
  return std::nullopt;
}

}  // namespace

std::string numbering_of_data(const std::string& source) {
  const auto description = description_of(source);
  if (!description || !fs::exists(*description)) return "";
  bool checked = false;
  const Json json = read_json_checked_from(kCheckedDescription, *description, "description of data", checked);
  const Json* numbering = json.find("numbering");
  return numbering && numbering->string() ? *numbering->string() : "";
}

void expect_numbering(const std::string& wanted, const std::string& what, const std::string& source) {
  const std::string has = numbering_of_data(source);
  if (wanted.empty() || has.empty() || has == wanted) return;
  throw Error(Kind::data,
              cat("'", source, "' has the numbering ", has, ", but ", what, " ", wanted,
                  ": equal keys mean different values in the two numberings. Run preprocess --apply with the "
                  "preprocess.json of the earlier data"));
}

}  // namespace hctr
