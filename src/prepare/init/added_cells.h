// Text columns that records do not contain: the partitions in the paths of their files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"
#include "prepare/init/text_layout.h"

namespace hctr {

/// Adds the partitions of a file to its columns, except those that are columns already. `numbered`: without a header
/// they are also named by numbers, like the columns of the files written.
void add_partitions(const fs::path& file, bool numbered, TextLayout&);

/// The values of these columns in one file.
class AddedCells {
 public:
  /// Errors: Error(data) for a file that lacks one of them.
  AddedCells(const fs::path& file, const TextLayout&);

  /// The cells of a record with the values after them; valid until the next call.
  std::span<const std::string_view> behind(std::span<const std::string_view> cells);
  /// The bytes of a record, or of the header, with them. Errors: Error(data) for a value that cannot be written.
  std::string written_behind(std::string_view record) const;
  std::string names_behind(std::string_view header) const;

 private:
  std::string with(std::string_view record, const std::vector<std::string>& texts) const;

  const TextLayout& layout_;
  std::vector<std::string> values_;
  std::vector<std::string_view> cells_;
};

}  // namespace hctr
