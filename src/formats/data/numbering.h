// The numbering of preprocessed data: the map from values to keys.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// The "schema" of preprocess.json files that this version writes. Files with this or a later schema end with a
/// checksum.
inline constexpr int64_t kCheckedDescription = 2;

/// Reads the numbering of the data at `source` from the preprocess.json that preprocess wrote together with the data.
/// `source`: a list, a Raw file or a list of Parquet files. Empty if there is none. Errors: Error(data) for a damaged
/// file.
std::string numbering_of_data(const std::string& source);

/// Checks that the data at `source` have the numbering `wanted`. An empty numbering is unknown and matches any. `what`:
/// the origin of `wanted` for messages, such as "the model 'runs/a'". Errors: Error(data) if the numberings differ.
void expect_numbering(const std::string& wanted, const std::string& what, const std::string& source);

}  // namespace hctr
