#include "formats/data/section_checks.h"

#include "core/base/expect.h"

namespace hctr {

void expect_records(int64_t records, const Source& source) {
  if (records == 0 && source.files.empty())
    throw Error(Kind::data, cat("'", source.path, "': the data set is empty: its files hold no records"));
}

void check_slot_sizes(const DataSection& section, const std::string& pointer, Problems& problems) {
  const auto sizes = static_cast<int64_t>(section.slot_size_array.size());
  if (sizes != 0 && sizes != section.slots())
    problems.error(pointer + "/slot_size_array", cat("has ", sizes, " numbers for ", section.slots(),
                                                     " slots; expected one number for each slot, to shift its keys"));
}

}  // namespace hctr
