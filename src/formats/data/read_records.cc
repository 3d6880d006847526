#include "formats/data/read_records.h"

#include <cstring>

namespace hctr {

void read_records(const ReadAt& read, int64_t offset, int64_t bytes, std::span<const RowSpan> spans,
                  std::vector<std::byte>& to) {
  constexpr int64_t kPage = 4096;
  int64_t at = 0;  // number of records in `to`
  for (size_t s = 0, next = 0; s < spans.size(); s = next) {
    for (next = s + 1; next < spans.size() && (spans[next].begin - spans[next - 1].end) * bytes < kPage;) ++next;
    const int64_t first = spans[s].begin, moved = at - first;
    const auto begin = static_cast<size_t>(at * bytes),
               count = static_cast<size_t>((spans[next - 1].end - first) * bytes);
    if (to.size() < begin + count) to.resize(begin + count);
    read(offset + first * bytes, to.data() + begin, count);
    for (; s < next; ++s) {
      const int64_t records = spans[s].end - spans[s].begin;
      std::memmove(to.data() + at * bytes, to.data() + (spans[s].begin + moved) * bytes,
                   static_cast<size_t>(records * bytes));
      at += records;
    }
  }
}

}  // namespace hctr
