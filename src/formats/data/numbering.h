// The numbering of prepared data: which key stands for which value.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// The first "schema" of a preprocess.json that ends with a checksum of itself, and the one that is written.
inline constexpr int64_t kCheckedDescription = 2;

/// The numbering that preprocess.json records for the data at `source` (a list, a Raw file or a list of Parquet files
/// written by preprocess); empty if there is none. Errors: Error(data) for a damaged file.
std::string numbering_of_data(const std::string& source);

/// `what`: for messages, as "the model 'runs/a'". Empty numberings are not known and fit all. Errors: Error(data) for
/// data of another numbering than `wanted`.
void expect_numbering(const std::string& wanted, const std::string& what, const std::string& source);

}  // namespace hctr
