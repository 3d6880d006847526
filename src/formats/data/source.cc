#include "formats/data/source.h"

#include "core/base/expect.h"

namespace hctr {

void note_missing_weight(const std::string& column, const fs::path& file, const Log& log) {
  if (!column.empty())
    log.info("note: '", file.string(), "' has no column '", column,
             "', the sample weight: all samples have weight 1 in the average loss.");
}

void fail_mixed_weights(const fs::path& first, const fs::path& other) {
  throw Error(Kind::data,
              cat("one of '", first.string(), "' and '", other.string(),
                  "' has a column of weights, but the other file has none: expected weights in all files of a set "
                  "or in none"));
}

}  // namespace hctr
