// Changes records of Norm files and corrects their check sums.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace hctr::test {

/// The file at this index, starting at 0, in a list of files.
std::filesystem::path listed_file(const std::filesystem::path& list, size_t number);

/// Writes a float into a record of a Norm file with "check": "Sum", after `before` other floats of the record: labels,
/// then dense values. Records are numbered from 0.
void set_norm_float(const std::filesystem::path& file, size_t record, size_t before, float value);

}  // namespace hctr::test
