#include "prepare/init/added_cells.h"

#include <algorithm>

#include "core/base/expect.h"
#include "formats/io/source_files.h"

namespace hctr {

void add_partitions(const fs::path& file, bool numbered, TextLayout& layout) {
  for (const Partition& partition : partitions_in(file)) {
    if (std::find(layout.columns.begin(), layout.columns.end(), partition.name) != layout.columns.end()) continue;
    layout.added.push_back(partition.name);
    layout.columns.push_back(!layout.header && numbered ? std::to_string(layout.columns.size() + 1) : partition.name);
  }
}

AddedCells::AddedCells(const fs::path& file, const TextLayout& layout) : layout_(layout) {
  const std::vector<Partition> partitions = partitions_in(file);
  for (const std::string& name : layout.added) {
    const auto found =
        std::find_if(partitions.begin(), partitions.end(), [&](const Partition& one) { return one.name == name; });
    if (found == partitions.end())
      throw Error(Kind::data, cat("'", file.string(), "' lacks the partition '", name, "' that other files have"));
    values_.push_back(found->value);
  }
}

std::span<const std::string_view> AddedCells::behind(std::span<const std::string_view> cells) {
  if (values_.empty()) return cells;
  cells_.assign(cells.begin(), cells.end());
  cells_.insert(cells_.end(), values_.begin(), values_.end());
  return cells_;
}

std::string AddedCells::with(std::string_view record, const std::vector<std::string>& texts) const {
  std::string text(record);
  const char quote = layout_.grammar.quote;
  for (const std::string& value : texts) {
    text += layout_.delimiter;
    const bool plain = value.find(layout_.delimiter) == value.npos && value.find_first_of("\r\n\"") == value.npos;
    if (plain) {
      text += value;
      continue;
    }
    if (quote == 0)
      throw Error(Kind::data, cat("the partition '", value, "' cannot be written to a cell without quotes"));
    text += quote;
    for (const char c : value) text += c == quote ? std::string(2, c) : std::string(1, c);
    text += quote;
  }
  return text;
}

std::string AddedCells::written_behind(std::string_view record) const { return with(record, values_); }
std::string AddedCells::names_behind(std::string_view header) const { return with(header, layout_.added); }

}  // namespace hctr
