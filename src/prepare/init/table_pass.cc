#include "prepare/init/table_pass.h"

#include <limits>

#include "base/error.h"

namespace hctr {

bool is_held_out(uint64_t row_hash) { return row_hash < std::numeric_limits<uint64_t>::max() / 10; }

void expect_few_bad_rows(const TablePass& pass) {
  const int64_t rows = pass.train_rows + pass.eval_rows + pass.without_label + pass.bad_rows;
  if (pass.bad_rows * 1000 <= rows) return;
  throw Error(Kind::data,
              cat(pass.first_bad,
                  pass.bad_rows == 1 ? "" : cat("; ", pass.bad_rows, " of ", rows, " rows are wrong in such a way")));
}

}  // namespace hctr
