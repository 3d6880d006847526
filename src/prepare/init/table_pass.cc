#include "prepare/init/table_pass.h"

#include <limits>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "formats/data/text_values.h"

namespace hctr {

uint64_t hash_with(uint64_t row_hash, size_t column, std::string_view text) {
  return text_hash(text, mix64(row_hash + column));
}

void HoldOut::look_at(uint64_t row_hash) {
  ++looked_at_;
  seen_.insert(row_hash);
}

bool HoldOut::held_out(uint64_t row_hash) {
  const uint64_t hash = by_number() ? mix64(mix64(kHoldOutSeed) + number_++) : row_hash;
  return hash < std::numeric_limits<uint64_t>::max() / 10;
}

void expect_few_bad_rows(const TablePass& pass) {
  const int64_t rows = pass.train_rows + pass.eval_rows + pass.without_label + pass.bad_rows;
  if (pass.bad_rows * 1000 <= rows) return;
  throw Error(Kind::data,
              cat(pass.first_bad,
                  pass.bad_rows == 1 ? "" : cat("; ", pass.bad_rows, " of ", rows, " rows have such an error")));
}

}  // namespace hctr
