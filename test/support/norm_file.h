// Changes records of Norm files and corrects their checksums.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace hctr::test {

/// The file at index `number` (from 0) of a file list.
std::filesystem::path listed_file(const std::filesystem::path& list, size_t number);

/// Sets a float in record number `record` (from 0) of a Norm file with "check": "Sum". `before`: the number of floats
/// before it in the record (labels, then dense values).
void set_norm_float(const std::filesystem::path& file, size_t record, size_t before, float value);

}  // namespace hctr::test
