// The code for one bag or one column in the functions of host_keys.h that plan, write and read messages. Shared by both
// devices.
#pragma once

#include "core/base/random.h"
#include "ops/embedding/host_keys.h"

namespace hctr::ops {

/// Bytes per occurrence that a message uses for the index of the occurrence's key; 0 if every occurrence has its own
/// key.
HCTR_HD inline int32_t place_bytes(int32_t keys, int32_t occurrences) {
  if (keys == occurrences) return 0;
  return keys <= 1 << 8 ? 1 : keys <= 1 << 16 ? 2 : 4;
}

/// The encoding of bag lengths in a message.
struct BagForm {
  int32_t length_bits = 0;  // bits per bag, if lengths are sent
  int32_t bag_bytes = 0;    // bytes per occurrence, if the bag of each occurrence is sent
  int64_t bytes = 0;

  HCTR_HD BagForm(const HostColumn& column, int32_t occurrences) {
    const int64_t bags = column.bags;
    if (column.most_keys == 1 && occurrences == bags) return;
    length_bits = column.most_keys == 1 ? 1 : column.most_keys <= 255 ? 8 : 32;
    bytes = (bags * length_bits + 7) / 8;
    const int32_t of_each = bags <= 1 << 16 ? 2 : 4;
    if (int64_t{occurrences} * of_each >= bytes) return;
    length_bits = 0;
    bag_bytes = of_each;
    bytes = int64_t{occurrences} * of_each;
  }
};

HCTR_HD inline void write_number(std::byte* to, int32_t bytes, uint32_t value) {
  for (int32_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xffu);
}
HCTR_HD inline uint32_t read_number(const std::byte* from, int32_t bytes) {
  uint32_t value = 0;
  for (int32_t i = 0; i < bytes; ++i) value |= static_cast<uint32_t>(from[i]) << (8 * i);
  return value;
}

/// Whether deduplicating the keys of a column saves bytes. Deduplication reduces the number of keys and vectors, but
/// adds a key index per occurrence.
HCTR_HD inline bool pays_unique(const HostMessages& all, const HostColumn& column, int32_t unique, int32_t occurrences,
                                int32_t bags) {
  const auto bytes = [&](int32_t keys) {
    const int64_t vectors = (all.sums_gradients ? 2 : 1) * int64_t{column.sums_of_keys && keys < bags ? keys : bags};
    return int64_t{keys} * 8 + int64_t{place_bytes(keys, occurrences)} * occurrences + vectors * all.vector_bytes;
  };
  return bytes(unique) < bytes(occurrences);
}

/// Decides whether a column has one vector per key or per bag, and one gradient per key or per bag.
HCTR_HD inline void choose_vectors(const HostMessages& all, const HostColumn& column, HostColumnPlan& plan) {
  plan.vector_a_key = column.answered && column.sums_of_keys && plan.keys < plan.bags;
  plan.gradient_a_key = plan.vector_a_key && all.sums_gradients;
}

HCTR_HD inline int64_t words_of_message(const HostMessages& all, int32_t message, const HostColumnPlan* plans) {
  int64_t words = 0, bytes = 0;
  for (int32_t c = all.first[message]; c < all.first[message + 1]; ++c) {
    const HostColumnPlan& plan = plans[c];
    words += int64_t{1} + plan.keys;
    bytes += BagForm(all.column[c], plan.occurrences).bytes +
             int64_t{place_bytes(plan.keys, plan.occurrences)} * plan.occurrences;
  }
  return words + (bytes + 7) / 8;
}

HCTR_HD inline HostMessageSizes sizes_of(const HostMessages& all, int32_t message, const HostColumnPlan* plans) {
  HostMessageSizes sizes;
  sizes.words = static_cast<int32_t>(words_of_message(all, message, plans));
  for (int32_t c = all.first[message]; c < all.first[message + 1]; ++c) {
    const HostColumnPlan& plan = plans[c];
    if (!all.column[c].answered) continue;
    sizes.vectors += plan.vector_a_key ? plan.keys : plan.bags;
    sizes.gradients += plan.gradient_a_key ? plan.keys : plan.bags;
    sizes.listed += plan.vector_a_key ? plan.keys : plan.occurrences;
  }
  return sizes;
}

/// Position of a message: its offset in words, and the indices of its first vector and first gradient. Each of the
/// three is the sum of the sizes of all earlier messages.
HCTR_HD inline HostMessageSizes sizes_before(const HostMessageSizes* sizes, int32_t message) {
  HostMessageSizes before;
  for (int32_t m = 0; m < message; ++m) {
    before.words += sizes[m].words;
    before.vectors += sizes[m].vectors;
    before.gradients += sizes[m].gradients;
  }
  return before;
}

HCTR_HD inline void place_columns(const HostMessages& all, int32_t message, const HostMessageSizes* sizes,
                                  HostColumnPlan* plans) {
  HostMessageSizes before = sizes_before(sizes, message);
  const int32_t first = all.first[message], end = all.first[message + 1];
  int64_t at = (int64_t{before.words} + end - first) * 8;
  for (int32_t c = first; c < end; ++c) {
    plans[c].keys_at = at;
    at += int64_t{plans[c].keys} * 8;
  }
  for (int32_t c = first; c < end; ++c) {
    HostColumnPlan& plan = plans[c];
    plan.lengths_at = at;
    at += BagForm(all.column[c], plan.occurrences).bytes;
    plan.places_at = at;
    at += int64_t{place_bytes(plan.keys, plan.occurrences)} * plan.occurrences;
    plan.first_vector = before.vectors;
    plan.first_gradient = before.gradients;
    if (!all.column[c].answered) continue;
    before.vectors += plan.vector_a_key ? plan.keys : plan.bags;
    before.gradients += plan.gradient_a_key ? plan.keys : plan.bags;
  }
}

/// The two header values of column c: number of keys, number of occurrences.
HCTR_HD inline int32_t* header_of(const HostMessages& all, const HostKeys& keys, int32_t c, std::byte* words) {
  const int32_t message = all.column[c].message;
  return reinterpret_cast<int32_t*>(words) +
         2 * (int64_t{sizes_before(keys.sizes, message).words} + c - all.first[message]);
}

/// Bag i, counted over all columns: its column, its index in the column, and its keys.
struct HostBag {
  int64_t at;  // index of the bag over all columns
  int32_t column, number;
  int32_t begin, end;  // range of keys

  HCTR_HD HostBag(const HostMessages& all, const HostKeys& keys, int64_t i)
      : at(i),
        column(static_cast<int32_t>(i / all.bags)),
        number(static_cast<int32_t>(i - column * all.bags)),
        begin(keys.offsets[i]),
        end(keys.offsets[i + 1]) {}
};

/// Start of the probe sequence for a key, before the mask of the table is applied.
HCTR_HD inline uint32_t first_slot(int64_t key, int32_t column) {
  return static_cast<uint32_t>(mix64(static_cast<uint64_t>(key) ^ mix64(static_cast<uint64_t>(column))));
}

/// Plans column c at a sender. `unique_before` [occurrences + 1]: number of first occurrences before each occurrence.
HCTR_HD inline void plan_column(const HostMessages& all, const HostKeys& keys, const int32_t* unique_before,
                                int32_t c) {
  const int64_t bag = c * all.bags;
  const int32_t begin = keys.offsets[bag], end = keys.offsets[bag + all.bags];
  HostColumnPlan plan;
  plan.occurrences = plan.keys = end - begin;
  plan.bags = keys.bag_numbers[bag + all.bags] - keys.bag_numbers[bag];
  const int32_t unique = unique_before[end] - unique_before[begin];
  if (all.column[c].answered && pays_unique(all, all.column[c], unique, plan.occurrences, plan.bags))
    plan.keys = unique;
  choose_vectors(all, all.column[c], plan);
  keys.columns[c] = plan;
}

/// Writes keys.places for the keys of bag i.
HCTR_HD inline void number_bag(const HostMessages& all, const HostKeys& keys, const int32_t* unique_before, int64_t i) {
  const HostBag bag(all, keys, i);
  const int32_t before = keys.offsets[bag.column * all.bags];
  const HostColumnPlan& plan = keys.columns[bag.column];
  for (int32_t p = bag.begin; p < bag.end; ++p)
    keys.places[p] = plan.keys == plan.occurrences ? p - before : unique_before[keys.first[p]] - unique_before[before];
}

/// Writes bag i to its message: its keys, their positions, and its length.
HCTR_HD inline void write_bag(const HostMessages& all, const HostKeys& keys, std::byte* words, int64_t i) {
  const HostBag bag(all, keys, i);
  const HostColumn& column = all.column[bag.column];
  if (bag.number >= column.bags) return;
  const HostColumnPlan& plan = keys.columns[bag.column];
  const BagForm form(column, plan.occurrences);
  const int32_t each = place_bytes(plan.keys, plan.occurrences), before = keys.offsets[bag.column * all.bags];
  if (form.length_bits == 1) {
    if (bag.number % 8 == 0) {  // with one bit per length, the first of eight bags writes the byte of all eight
      uint32_t bits = 0;
      for (int32_t k = 0; k < 8 && bag.number + k < column.bags; ++k)
        bits |= static_cast<uint32_t>(keys.offsets[i + k + 1] > keys.offsets[i + k]) << k;
      write_number(words + plan.lengths_at + bag.number / 8, 1, bits);
    }
  } else if (form.length_bits > 1) {
    write_number(words + plan.lengths_at + int64_t{bag.number} * (form.length_bits / 8), form.length_bits / 8,
                 static_cast<uint32_t>(bag.end - bag.begin));
  }
  for (int32_t p = bag.begin; p < bag.end; ++p) {
    const int64_t occurrence = p - before;
    write_number(words + plan.lengths_at + occurrence * form.bag_bytes, form.bag_bytes,
                 static_cast<uint32_t>(bag.number));
    write_number(words + plan.places_at + occurrence * each, each, static_cast<uint32_t>(keys.places[p]));
    if (plan.keys == plan.occurrences || keys.first[p] == p)
      reinterpret_cast<int64_t*>(words + plan.keys_at)[keys.places[p]] = keys.keys[p];
  }
}

/// Writes the header of column c. For the last column of a message, also zero-pads the last word.
HCTR_HD inline void write_head(const HostMessages& all, const HostKeys& keys, std::byte* words, int32_t c) {
  const HostColumnPlan& plan = keys.columns[c];
  int32_t* const head = header_of(all, keys, c, words);
  head[0] = plan.keys;
  head[1] = plan.occurrences;
  if (c + 1 < all.first[all.column[c].message + 1]) return;
  const int64_t end = plan.places_at + int64_t{place_bytes(plan.keys, plan.occurrences)} * plan.occurrences;
  for (int64_t at = end; at % 8 != 0; ++at) words[at] = std::byte{0};
}

/// Refuses a malformed message: sets its flag and clears its columns.
HCTR_HD inline void refuse(const HostMessages& all, const HostKeys& keys, int32_t message) {
  keys.refused[message] = 1;
  for (int32_t c = all.first[message]; c < all.first[message + 1]; ++c) keys.columns[c] = {};
}

/// Reads and checks the column headers of a message, and computes the offsets of its columns.
HCTR_HD inline void read_heads(const HostMessages& all, const HostKeys& keys, std::byte* words, int32_t message) {
  const int32_t first = all.first[message], end = all.first[message + 1];
  bool good = keys.sizes[message].words >= end - first;
  keys.refused[message] = 0;
  for (int32_t c = first; c < end && good; ++c) {
    const HostColumn& column = all.column[c];
    const int32_t* const head = header_of(all, keys, c, words);
    HostColumnPlan plan;
    plan.keys = head[0];
    plan.occurrences = head[1];
    keys.columns[c] = plan;
    good = plan.keys >= 0 && plan.keys <= plan.occurrences && (column.answered || plan.keys == plan.occurrences) &&
           plan.occurrences <= int64_t{column.bags} * column.most_keys;
  }
  if (!good || words_of_message(all, message, keys.columns) != keys.sizes[message].words) refuse(all, keys, message);
  place_columns(all, message, keys.sizes, keys.columns);
}

/// Returns how many of `count` ascending numbers are below `number`. Each number has `bytes` bytes.
HCTR_HD inline int32_t count_below(const std::byte* numbers, int32_t bytes, int32_t count, uint32_t number) {
  int32_t begin = 0, end = count;
  while (begin < end) {
    const int32_t middle = begin + (end - begin) / 2;
    if (read_number(numbers + int64_t{middle} * bytes, bytes) < number)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// Returns the number of keys in bag i, counted over all columns.
HCTR_HD inline int32_t length_of(const HostMessages& all, const HostKeys& keys, const std::byte* words, int64_t i) {
  const auto c = static_cast<int32_t>(i / all.bags), number = static_cast<int32_t>(i - c * all.bags);
  const HostColumn& column = all.column[c];
  if (number >= column.bags) return 0;
  const HostColumnPlan& plan = keys.columns[c];
  const BagForm form(column, plan.occurrences);
  const std::byte* const lengths = words + plan.lengths_at;
  if (form.bag_bytes > 0) {
    const auto bag = static_cast<uint32_t>(number);
    return count_below(lengths, form.bag_bytes, plan.occurrences, bag + 1) -
           count_below(lengths, form.bag_bytes, plan.occurrences, bag);
  }
  if (form.length_bits == 0) return 1;
  if (form.length_bits == 1) return static_cast<int32_t>(read_number(lengths + number / 8, 1) >> (number % 8) & 1u);
  return static_cast<int32_t>(read_number(lengths + int64_t{number} * (form.length_bits / 8), form.length_bits / 8));
}

/// Reads keys.places for the keys of bag i. keys.offsets must be complete.
HCTR_HD inline void read_places(const HostMessages& all, const HostKeys& keys, const std::byte* words, int64_t i) {
  const HostBag bag(all, keys, i);
  const HostColumnPlan& plan = keys.columns[bag.column];
  const int32_t each = place_bytes(plan.keys, plan.occurrences), before = keys.offsets[bag.column * all.bags];
  for (int32_t p = bag.begin; p < bag.end; ++p)
    keys.places[p] = each == 0
                         ? p - before
                         : static_cast<int32_t>(read_number(words + plan.places_at + int64_t{p - before} * each, each));
}

/// The result of a check of some bags and occurrences of a column.
struct ColumnFindings {
  int64_t keys = 0;  // number of keys in the checked bags
  int32_t bags = 0;  // number of checked bags that are not empty
  bool good = true;  // all values are in range and in order
};

/// Checks every `step`-th bag and occurrence of column c, from `begin` on.
HCTR_HD inline ColumnFindings look_at_column(const HostMessages& all, const HostKeys& keys, const std::byte* words,
                                             int32_t c, int64_t begin, int64_t step) {
  const HostColumn& column = all.column[c];
  const HostColumnPlan& plan = keys.columns[c];
  const BagForm form(column, plan.occurrences);
  const int32_t each = place_bytes(plan.keys, plan.occurrences);
  ColumnFindings found;
  for (int64_t b = begin; b < column.bags; b += step) {
    const int32_t length = length_of(all, keys, words, c * all.bags + b);
    found.good = found.good && length >= 0 && length <= column.most_keys;
    found.keys += length;
    found.bags += length > 0;
  }
  for (int64_t i = begin; i < plan.occurrences; i += step) {
    const auto bag_of = [&](int64_t of) {
      return read_number(words + plan.lengths_at + of * form.bag_bytes, form.bag_bytes);
    };
    if (each > 0)
      found.good =
          found.good && read_number(words + plan.places_at + i * each, each) < static_cast<uint32_t>(plan.keys);
    if (form.bag_bytes > 0)
      found.good =
          found.good && bag_of(i) < static_cast<uint32_t>(column.bags) && (i == 0 || bag_of(i - 1) <= bag_of(i));
  }
  return found;
}

/// Completes a message after the checks of all its columns, or refuses it.
HCTR_HD inline void finish_message(const HostMessages& all, const HostKeys& keys, int32_t message) {
  bool good = keys.refused[message] == 0;
  for (int32_t c = all.first[message]; c < all.first[message + 1]; ++c) {
    HostColumnPlan& plan = keys.columns[c];
    good = good && plan.counted == plan.occurrences;
    choose_vectors(all, all.column[c], plan);
  }
  if (!good || !(sizes_of(all, message, keys.columns) == keys.sizes[message])) refuse(all, keys, message);
  place_columns(all, message, keys.sizes, keys.columns);
}

}  // namespace hctr::ops
