// Adds columns whose values are not in a file's records but in its path: partitions, such as "day=3".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"
#include "prepare/init/text_layout.h"

namespace hctr {

/// Adds the partitions in a file's path to the layout's columns, except partitions that are columns already.
/// `numbered`: without a header, the partition columns get their column numbers as names. Set it if output files are
/// written, because these contain the partitions as ordinary columns.
void add_partitions(const fs::path& file, bool numbered, TextLayout&);

/// The values of the added columns in one file.
class AddedCells {
 public:
  /// Errors: Error(data) if the path lacks a partition.
  AddedCells(const fs::path& file, const TextLayout&);

  /// The cells of a record, followed by the added values; valid until the next call.
  std::span<const std::string_view> behind(std::span<const std::string_view> cells);
  /// The bytes of a record or header, followed by the added values or names. Errors: Error(data) if a value cannot be
  /// written.
  std::string written_behind(std::string_view record) const;
  std::string names_behind(std::string_view header) const;

 private:
  std::string with(std::string_view record, const std::vector<std::string>& texts) const;

  const TextLayout& layout_;
  std::vector<std::string> values_;
  std::vector<std::string_view> cells_;
};

}  // namespace hctr
