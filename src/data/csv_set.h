// Text with any columns, as the "csv" clause describes them.
#pragma once

#include <memory>

#include "data/text_set.h"

namespace hctr {

void check_csv_clause(const DataClause&, const std::string& pointer, Problems&);

/// What the clause makes of a text. Reads vocabularies. Errors: Error(io), Error(data) for those.
TextFormat csv_format(const DataClause&);

/// The key of the value `text` in slot `slot`, of `buckets` keys: floor(h * buckets / 2^64) with h = text_hash(text, mix64(seed + slot)).
int64_t csv_hashed_key(std::string_view text, uint64_t seed, int64_t slot, int64_t buckets);
/// Keys that a hash without buckets gives: all of [0, 2^63 - 1).
inline constexpr int64_t kAllKeys = 0x7fffffffffffffff;

std::unique_ptr<SampleSet> open_csv_set(const DataClause&, const Source&, KeyWidth, const Log&);

}  // namespace hctr
