#include "prepare/bad_rows.h"

#include "core/base/expect.h"
#include "prepare/text_source.h"

namespace hctr {

void BadRowsFound::add(const BadRows& policy, const TextBlock& block, int64_t line, const char* row,
                       const std::string& problem) {
  if (policy.skip && count++ > 0) return;
  first =
      cat("'", block.file, "' line ", line, ", at byte ", block.first_byte + (row - block.text.data()), ": ", problem);
  if (!policy.skip) throw Error(Kind::data, cat(first, "; --bad-rows skip ignores such rows"));
}

void BadRowsFound::add(const BadRows& policy, const BadRowsFound& more) {
  if (more.count == 0) return;
  if (count == 0) first = more.first;
  count += more.count;
  if (count > policy.most)
    throw Error(Kind::data, cat(count, " bad rows so far, but --max-bad-rows allows ", policy.most,
                                "; one of the last bad rows: ", more.first));
}

void BadRowsFound::report(const Log& log) const {
  if (count > 0)
    log.warning(count, count == 1 ? " bad row was skipped: " : " bad rows were skipped, the first: ", first);
}

}  // namespace hctr
