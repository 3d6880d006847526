#include "formats/checkpoint/whole_checkpoint.h"

#include <algorithm>
#include <vector>

#include "core/base/expect.h"
#include "formats/checkpoint/checkpoint_folder.h"

namespace hctr {

WholeCheckpoint read_checkpoint(const fs::path& folder, const CheckpointCheck& check) {
  WholeCheckpoint checkpoint{.folder = folder, .manifest = read_manifest(folder)};
  in_context([&] { return cat("reading '", (folder / kManifestName).string(), "'"); },
             [&] {
               const Json* iterations = checkpoint.manifest.progress.find("iterations");
               if (!iterations || !iterations->integer())
                 throw Error(Kind::data,
                             cat("the progress of a checkpoint has ", iterations ? iterations->text() : "nothing",
                                 " as \"iterations\", expected an integer"));
               checkpoint.iteration = *iterations->integer();
               if (check) check(checkpoint);
             });
  if (const auto named = iteration_of(folder); named && *named != checkpoint.iteration)
    throw Error(Kind::data, cat("'", folder.string(), "' contains the state of iteration ", checkpoint.iteration,
                                ": the folder is a copy or was renamed; rename the folder to '",
                                checkpoint_path({}, checkpoint.iteration).string(), "', or remove the folder"));
  verify_files(folder, checkpoint.manifest);
  return checkpoint;
}

std::optional<WholeCheckpoint> newest_checkpoint(const fs::path& folder, const Log& log, const CheckpointCheck& check) {
  std::vector<CheckpointPlace> places = list_checkpoints(folder);
  std::reverse(places.begin(), places.end());
  std::optional<Error> first;
  for (const CheckpointPlace& place : places) try {
      WholeCheckpoint checkpoint = read_checkpoint(place.path, check);
      if (first) log.warning("using an older checkpoint instead: '", place.path.string(), "'");
      return checkpoint;
    } catch (const Error& error) {
      log.warning("checkpoint '", place.path.string(), "' cannot be used: ", error.what());
      if (!first) first = error;
    }
  if (first) throw first->with_context(cat("looking for a complete checkpoint in '", folder.string(), "'"));
  return std::nullopt;
}

}  // namespace hctr
