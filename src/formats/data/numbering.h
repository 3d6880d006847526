// The numbering of prepared data: which key stands for which value.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// The first "schema" of a preprocess.json that ends with a checksum of itself, and the one that is written.
inline constexpr int64_t kCheckedDescription = 2;

/// What preprocess.json says of the data at `source`, a list, a Raw file or a list of Parquet files that preprocess has
/// written; empty where there is none, or it says nothing. Errors: Error(data) for a file that is
/// damaged.
std::string numbering_of_data(const std::string& source);

/// `what`: for messages, as "the model 'runs/a'". Empty numberings are not known and fit all. Errors: Error(data) for
/// data of another numbering than `wanted`.
void expect_numbering(const std::string& wanted, const std::string& what, const std::string& source);

}  // namespace hctr
