#include "prepare/preprocess/vocabulary.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/base/prefetch.h"
#include "formats/data/key_space.h"

namespace hctr {

Vocabulary::Vocabulary(CodeCounts& counts, uint64_t min_count) : by_id_(kFirstValue) {
  counts.for_each([&](uint64_t code, uint64_t count) {
    if (code == kMissing) {
      missing_ = static_cast<int64_t>(count);
      return;
    }
    ++distinct_;
    if (count >= min_count)
      by_id_.push_back({code, count});
    else
      rare_ += static_cast<int64_t>(count);
  });
  counts = CodeCounts();
  std::sort(by_id_.begin() + kFirstValue, by_id_.end(), [](const CodeCounts::Entry& a, const CodeCounts::Entry& b) {
    return std::tie(b.count, a.code) < std::tie(a.count, b.code);
  });
  index();
}

Vocabulary::Vocabulary(std::span<const uint64_t> codes, const Totals& totals)
    : by_id_(kFirstValue), distinct_(totals.distinct), missing_(totals.missing), rare_(totals.rare) {
  for (const uint64_t code : codes) by_id_.push_back({code, 0});
  index();
}

void Vocabulary::index() {
  entries_.resize(std::bit_ceil(by_id_.size() * 2));
  for (uint64_t id = kFirstValue; id < by_id_.size(); ++id) entries_[place(by_id_[id].code)] = {by_id_[id].code, id};
}

size_t Vocabulary::place(uint64_t code) const {
  const size_t mask = entries_.size() - 1;
  size_t at = mix64(code) & mask;
  while (entries_[at].id != 0 && entries_[at].code != code) at = (at + 1) & mask;
  return at;
}

uint64_t Vocabulary::id(uint64_t code) const {
  if (code == kMissing) return kMissing;
  const uint64_t id = entries_[place(code)].id;
  return id == 0 ? kRare : id;
}

void Vocabulary::to_ids(std::span<uint64_t> codes) const {
  constexpr size_t kAhead = 12;  // prefetches this many entries ahead if the table exceeds the cache
  for (size_t i = 0; i < codes.size(); ++i) {
    if (i + kAhead < codes.size()) prefetch(&entries_[mix64(codes[i + kAhead]) & (entries_.size() - 1)]);
    codes[i] = id(codes[i]);
  }
}

}  // namespace hctr
