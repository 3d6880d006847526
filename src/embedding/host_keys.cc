#include "embedding/host_keys.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "base/random.h"

namespace hctr {
namespace {

/// The number of each key among the different ones, in the order in which they are first seen.
class KeyNumbers {
 public:
  explicit KeyNumbers(size_t most_keys) : numbers_(std::bit_ceil(2 * std::max<size_t>(1, most_keys)), kNone) {}
  /// `keys`: those numbered so far. A new key is added to them.
  int32_t number_of(int64_t key, std::vector<int64_t>& keys, size_t first) {
    const size_t mask = numbers_.size() - 1;
    for (size_t at = mix64(static_cast<uint64_t>(key)) & mask;; at = (at + 1) & mask) {
      if (numbers_[at] == kNone) {
        numbers_[at] = static_cast<int32_t>(keys.size() - first);
        keys.push_back(key);
        return numbers_[at];
      }
      if (keys[first + static_cast<size_t>(numbers_[at])] == key) return numbers_[at];
    }
  }

 private:
  static constexpr int32_t kNone = -1;
  std::vector<int32_t> numbers_;  // open addressing
};

/// Bytes of the place of an occurrence.
int64_t place_bytes(int64_t keys, int64_t occurrences) {
  if (keys == occurrences) return 0;
  return keys <= 1 << 8 ? 1 : keys <= 1 << 16 ? 2 : 4;
}

/// How a message says which bags have how many keys.
struct BagForm {
  int length_bits = 0;    // of each bag
  int64_t bag_bytes = 0;  // of each occurrence, if those say it
  int64_t bytes = 0;

  BagForm(const HostKeysShape& shape, size_t column, int64_t occurrences) {
    const int64_t most = shape.columns[column].most_keys, bags = shape.bags();
    if (most == 1 && occurrences == bags) return;
    length_bits = most == 1 ? 1 : most <= 255 ? 8 : 32;
    bytes = (bags * length_bits + 7) / 8;
    const int64_t of_each = bags <= 1 << 16 ? 2 : 4;
    if (occurrences * of_each >= bytes) return;
    length_bits = 0;
    bag_bytes = of_each;
    bytes = occurrences * of_each;
  }
};

void write_number(std::byte*& to, int64_t bytes, uint32_t value) {
  for (int64_t i = 0; i < bytes; ++i) *to++ = static_cast<std::byte>(value >> (8 * i));
}
uint32_t read_number(const std::byte*& from, int64_t bytes) {
  uint32_t value = 0;
  for (int64_t i = 0; i < bytes; ++i) value |= static_cast<uint32_t>(*from++) << (8 * i);
  return value;
}

}  // namespace

HostKeys::HostKeys(const HostKeysShape& shape, std::span<const RankKeys> of_ranks) {
  HCTR_EXPECT(static_cast<int64_t>(of_ranks.size()) == shape.ranks, "keys of ", of_ranks.size(), " ranks, of ",
              shape.ranks);
  columns_.resize(shape.columns.size());
  std::vector<size_t> at(of_ranks.size(), 0);
  std::vector<int64_t> keys;
  for (size_t c = 0; c < columns_.size(); ++c) {
    keys.clear();
    const size_t bags_before = bags_.size();
    const int64_t first_bag = static_cast<int64_t>(c) * shape.samples;
    for (size_t r = 0; r < of_ranks.size(); ++r)
      for (const RankKeys& of = of_ranks[r]; at[r] < of.keys.size() && of.bags[at[r]] < first_bag + shape.samples;
           ++at[r]) {
        const auto bag = static_cast<int32_t>(static_cast<int64_t>(r) * shape.samples + of.bags[at[r]] - first_bag);
        if (bags_.size() == bags_before || bags_.back() != bag) {
          bags_.push_back(bag);
          lengths_.push_back(0);
        }
        ++lengths_.back();
        keys.push_back(of.keys[at[r]]);
      }
    columns_[c].bags = static_cast<int32_t>(bags_.size() - bags_before);
    add_column(shape, c, keys);
  }
  choose_vectors(shape);
}

/// Keys are made unique unless that takes more bytes, of places, than it saves.
void HostKeys::add_column(const HostKeysShape& shape, size_t column, std::span<const int64_t> keys) {
  Column& of = columns_[column];
  of.occurrences = of.keys = static_cast<int32_t>(keys.size());
  const size_t first_key = keys_.size(), first_place = places_.size();
  KeyNumbers numbers(keys.size());
  for (const int64_t key : keys) places_.push_back(numbers.number_of(key, keys_, first_key));
  const auto unique = static_cast<int64_t>(keys_.size() - first_key), all = static_cast<int64_t>(keys.size());
  const auto bytes = [&](int64_t of_keys) {
    const int64_t vectors = shape.columns[column].sums_of_keys ? std::min<int64_t>(of_keys, of.bags) : of.bags;
    return of_keys * static_cast<int64_t>(sizeof(int64_t)) + place_bytes(of_keys, all) * all +
           vectors * shape.vector_bytes;
  };
  if (bytes(unique) < bytes(all)) {
    of.keys = static_cast<int32_t>(unique);
    return;
  }
  keys_.resize(first_key);
  keys_.insert(keys_.end(), keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size(); ++i) places_[first_place + i] = static_cast<int32_t>(i);
}

void HostKeys::choose_vectors(const HostKeysShape& shape) {
  for (size_t c = 0; c < columns_.size(); ++c) {
    columns_[c].vector_a_key = shape.columns[c].sums_of_keys && columns_[c].keys < columns_[c].bags;
    vectors_ += columns_[c].vector_a_key ? columns_[c].keys : columns_[c].bags;
  }
}

std::vector<int64_t> HostKeys::message(const HostKeysShape& shape) const {
  int64_t bytes = 0;
  for (size_t c = 0; c < columns_.size(); ++c)
    bytes += BagForm(shape, c, columns_[c].occurrences).bytes +
             place_bytes(columns_[c].keys, columns_[c].occurrences) * columns_[c].occurrences;
  std::vector<int64_t> words(columns_.size() + keys_.size() + static_cast<size_t>((bytes + 7) / 8));
  auto* to = reinterpret_cast<std::byte*>(words.data());
  for (const Column& of : columns_) {
    write_number(to, 4, static_cast<uint32_t>(of.keys));
    write_number(to, 4, static_cast<uint32_t>(of.occurrences));
  }
  if (!keys_.empty()) std::memcpy(to, keys_.data(), keys_.size() * sizeof(int64_t));
  to += keys_.size() * sizeof(int64_t);

  size_t bag = 0, occurrence = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& of = columns_[c];
    const BagForm form(shape, c, of.occurrences);
    std::byte* const lengths = to;
    to += form.bytes;
    std::byte* of_occurrence = lengths;
    for (const size_t end = bag + static_cast<size_t>(of.bags); bag < end; ++bag) {
      const auto number = static_cast<uint32_t>(bags_[bag]), length = static_cast<uint32_t>(lengths_[bag]);
      HCTR_EXPECT(lengths_[bag] <= shape.columns[c].most_keys, "a bag of ", length, " keys, of at most ",
                  shape.columns[c].most_keys);
      if (form.length_bits == 1) {
        lengths[number / 8] |= static_cast<std::byte>(1u << number % 8);
      } else if (form.length_bits > 1) {
        std::byte* at = lengths + int64_t{number} * (form.length_bits / 8);
        write_number(at, form.length_bits / 8, length);
      }
      for (uint32_t i = 0; i < length && form.bag_bytes > 0; ++i) write_number(of_occurrence, form.bag_bytes, number);
    }
    const int64_t each = place_bytes(of.keys, of.occurrences);
    for (int32_t i = 0; i < of.occurrences; ++i, ++occurrence)
      write_number(to, each, static_cast<uint32_t>(places_[occurrence]));
  }
  return words;
}

HostKeys HostKeys::read(const HostKeysShape& shape, std::span<const int64_t> message) {
  HostKeys all;
  all.columns_.resize(shape.columns.size());
  const auto bytes = std::as_bytes(message);
  const std::byte *from = bytes.data(), *const end = from + bytes.size();
  const auto expect = [&](int64_t more) {
    HCTR_EXPECT(more >= 0 && more <= end - from, "keys of a host: ", bytes.size(), " bytes, and ", more,
                " more are read at ", from - bytes.data());
  };
  expect(static_cast<int64_t>(all.columns_.size() * sizeof(int64_t)));
  int64_t keys = 0;
  for (Column& of : all.columns_) {
    of.keys = static_cast<int32_t>(read_number(from, 4));
    of.occurrences = static_cast<int32_t>(read_number(from, 4));
    keys += of.keys;
  }
  expect(keys * static_cast<int64_t>(sizeof(int64_t)));
  all.keys_.resize(static_cast<size_t>(keys));
  if (keys > 0) std::memcpy(all.keys_.data(), from, static_cast<size_t>(keys) * sizeof(int64_t));
  from += keys * static_cast<int64_t>(sizeof(int64_t));

  for (size_t c = 0; c < all.columns_.size(); ++c) {
    Column& of = all.columns_[c];
    const BagForm form(shape, c, of.occurrences);
    const size_t before = all.bags_.size();
    const auto add = [&](int64_t bag, uint32_t length) {
      if (length == 0) return;
      all.bags_.push_back(static_cast<int32_t>(bag));
      all.lengths_.push_back(static_cast<int32_t>(length));
    };
    expect(form.bytes);
    const std::byte* at = from;
    if (form.bag_bytes > 0) {
      for (int32_t i = 0; i < of.occurrences; ++i) {
        const auto bag = static_cast<int32_t>(read_number(at, form.bag_bytes));
        if (all.bags_.size() > before && all.bags_.back() == bag)
          ++all.lengths_.back();
        else
          add(bag, 1);
      }
    } else {
      for (int64_t bag = 0; bag < shape.bags(); ++bag)
        add(bag, form.length_bits == 0   ? 1
                 : form.length_bits == 1 ? static_cast<uint32_t>(from[bag / 8] >> (bag % 8)) & 1u
                                         : read_number(at, form.length_bits / 8));
    }
    from += form.bytes;
    of.bags = static_cast<int32_t>(all.bags_.size() - before);
    const int64_t each = place_bytes(of.keys, of.occurrences);
    expect(each * of.occurrences);
    for (int32_t i = 0; i < of.occurrences; ++i)
      all.places_.push_back(each == 0 ? i : static_cast<int32_t>(read_number(from, each)));
  }
  HCTR_EXPECT(end - from < static_cast<std::ptrdiff_t>(sizeof(int64_t)), "keys of a host: ", end - from,
              " bytes follow them");
  all.choose_vectors(shape);
  return all;
}

std::vector<NumberLists> HostKeys::vectors_of_bags(const HostKeysShape& shape) const {
  std::vector<NumberLists> of_ranks(static_cast<size_t>(shape.ranks));
  size_t bag = 0, occurrence = 0;
  int32_t first_vector = 0;
  for (const Column& of : columns_) {
    for (int32_t i = 0; i < of.bags; ++i, ++bag) {
      NumberLists& lists = of_ranks[static_cast<size_t>(bags_[bag] / shape.samples)];
      const auto length = static_cast<size_t>(lengths_[bag]);
      if (!of.vector_a_key) lists.numbers.push_back(first_vector + i);
      for (size_t k = 0; k < length && of.vector_a_key; ++k)
        lists.numbers.push_back(first_vector + places_[occurrence + k]);
      occurrence += length;
      lists.end_list();
    }
    first_vector += of.vector_a_key ? of.keys : of.bags;
  }
  return of_ranks;
}

NumberLists HostKeys::occurrences_of_vectors() const {
  NumberLists lists;
  size_t bag = 0;
  int32_t occurrence = 0;
  for (const Column& of : columns_) {
    int32_t next_key = 0;  // keys are numbered in the order of their first occurrences
    for (int32_t i = 0; i < of.bags; ++i, ++bag)
      for (int32_t k = lengths_[bag]; k > 0; --k, ++occurrence) {
        if (!of.vector_a_key) {
          lists.numbers.push_back(occurrence);
          if (k == 1) lists.end_list();
        } else if (places_[static_cast<size_t>(occurrence)] == next_key) {
          lists.numbers.push_back(occurrence);
          lists.end_list();
          ++next_key;
        }
      }
  }
  return lists;
}

}  // namespace hctr
