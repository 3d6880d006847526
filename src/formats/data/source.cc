#include "formats/data/source.h"

#include "core/base/expect.h"

namespace hctr {

void note_missing_weight(const std::string& column, const fs::path& file, const Log& log) {
  if (!column.empty())
    log.info("note: '", file.string(), "' has no column '", column,
             "', the sample weight: each sample counts once in the average loss.");
}

void fail_mixed_weights(const fs::path& first, const fs::path& other) {
  throw Error(Kind::data,
              cat("one of '", first.string(), "' and '", other.string(),
                  "' has a column of weights, but the other has none: give all files of a set weights, or none"));
}

}  // namespace hctr
