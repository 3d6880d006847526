// What each bag and column does in the functions of host_keys.h, for the loops of both devices.
#pragma once

#include "base/random.h"
#include "ops/embedding/host_keys.h"

namespace hctr::ops {

/// Bytes of the place of an occurrence.
HCTR_HD inline int32_t place_bytes(int32_t keys, int32_t occurrences) {
  if (keys == occurrences) return 0;
  return keys <= 1 << 8 ? 1 : keys <= 1 << 16 ? 2 : 4;
}

/// How a message says which bags have how many keys.
struct BagForm {
  int32_t length_bits = 0;  // of each bag
  int32_t bag_bytes = 0;    // of each occurrence, if those say it
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

/// Whether keys are made unique: unless that takes more bytes, of places, than it saves.
HCTR_HD inline bool pays_unique(const HostMessages& all, const HostColumn& column, int32_t unique, int32_t occurrences,
                                int32_t bags) {
  const auto bytes = [&](int32_t keys) {
    const int64_t vectors = column.sums_of_keys && keys < bags ? keys : bags;
    return int64_t{keys} * 8 + int64_t{place_bytes(keys, occurrences)} * occurrences + vectors * all.vector_bytes;
  };
  return bytes(unique) < bytes(occurrences);
}

/// Sets what follows from the keys, occurrences and bags of a column.
HCTR_HD inline void choose_vectors(const HostMessages& all, const HostColumn& column, HostColumnPlan& plan) {
  plan.vector_a_key = column.answered && column.sums_of_keys && plan.keys < plan.bags;
  plan.gradient_a_key = plan.vector_a_key && all.sums_gradients && column.most_keys == 1;
}

HCTR_HD inline HostMessageSizes sizes_of(const HostMessages& all, int32_t message, const HostColumnPlan* plans) {
  HostMessageSizes sizes;
  int64_t words = 0, bytes = 0;
  for (int32_t c = all.first[message]; c < all.first[message + 1]; ++c) {
    const HostColumnPlan plan = plans[c];
    words += 1 + plan.keys;
    bytes += BagForm(all.column[c], plan.occurrences).bytes +
             int64_t{place_bytes(plan.keys, plan.occurrences)} * plan.occurrences;
    if (!all.column[c].answered) continue;
    sizes.vectors += plan.vector_a_key ? plan.keys : plan.bags;
    sizes.gradients += plan.gradient_a_key ? plan.keys : plan.bags;
    sizes.listed += plan.vector_a_key ? plan.keys : plan.occurrences;
  }
  sizes.words = static_cast<int32_t>(words + (bytes + 7) / 8);
  return sizes;
}

/// Where a message begins, and its first vector and gradient: behind those of the messages before it.
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

/// The two numbers of a column at the head of its message.
HCTR_HD inline int32_t* header_of(const HostMessages& all, const HostKeys& keys, int32_t c, std::byte* words) {
  const int32_t message = all.column[c].message;
  return reinterpret_cast<int32_t*>(words) +
         2 * (int64_t{sizes_before(keys.sizes, message).words} + c - all.first[message]);
}

/// Bag i of all, and the bag of its column that it is.
struct HostBag {
  int32_t column, number;
  int32_t begin, end;  // keys

  HCTR_HD HostBag(const HostMessages& all, const HostKeys& keys, int64_t i)
      : column(static_cast<int32_t>(i / all.bags)),
        number(static_cast<int32_t>(i - column * all.bags)),
        begin(keys.offsets[i]),
        end(keys.offsets[i + 1]) {}
};

/// Where probing for a key begins in a table of occurrences, before it is cut to the size of the table.
HCTR_HD inline uint32_t first_slot(int64_t key, int32_t column) {
  return static_cast<uint32_t>(mix64(static_cast<uint64_t>(key) ^ mix64(static_cast<uint64_t>(column))));
}

/// The sizes of a column of a sender. `unique_before` [occurrences + 1]: first occurrences before each.
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

/// The places of the keys of a bag.
HCTR_HD inline void number_bag(const HostMessages& all, const HostKeys& keys, const int32_t* unique_before, int64_t i) {
  const HostBag bag(all, keys, i);
  const int32_t before = keys.offsets[bag.column * all.bags];
  const HostColumnPlan& plan = keys.columns[bag.column];
  for (int32_t p = bag.begin; p < bag.end; ++p)
    keys.places[p] = plan.keys == plan.occurrences ? p - before : unique_before[keys.first[p]] - unique_before[before];
}

/// Writes a bag: its keys, places, and how many they are.
HCTR_HD inline void write_bag(const HostMessages& all, const HostKeys& keys, std::byte* words, int64_t i) {
  const HostBag bag(all, keys, i);
  const HostColumn& column = all.column[bag.column];
  if (bag.number >= column.bags) return;
  const HostColumnPlan& plan = keys.columns[bag.column];
  const BagForm form(column, plan.occurrences);
  const int32_t each = place_bytes(plan.keys, plan.occurrences), before = keys.offsets[bag.column * all.bags];
  if (form.length_bits == 1) {
    if (bag.number % 8 == 0) {  // of this bag and the next ones
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

/// The head of a column, and zeros in the last word of its message if it is not full.
HCTR_HD inline void write_head(const HostMessages& all, const HostKeys& keys, std::byte* words, int32_t c) {
  const HostColumnPlan& plan = keys.columns[c];
  int32_t* const head = header_of(all, keys, c, words);
  head[0] = plan.keys;
  head[1] = plan.occurrences;
  if (c + 1 < all.first[all.column[c].message + 1]) return;
  const int64_t end = plan.places_at + int64_t{place_bytes(plan.keys, plan.occurrences)} * plan.occurrences;
  for (int64_t at = end; at % 8 != 0; ++at) words[at] = std::byte{0};
}

HCTR_HD inline void read_head(const HostMessages& all, const HostKeys& keys, std::byte* words, int32_t c) {
  const int32_t* const head = header_of(all, keys, c, words);
  HostColumnPlan plan;
  plan.keys = head[0];
  plan.occurrences = head[1];
  keys.columns[c] = plan;
}

/// How many of `count` ascending numbers are below one.
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

/// How many keys bag i of all has.
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

/// The places of a bag, once offsets are known.
HCTR_HD inline void read_places(const HostMessages& all, const HostKeys& keys, const std::byte* words, int64_t i) {
  const HostBag bag(all, keys, i);
  const HostColumnPlan& plan = keys.columns[bag.column];
  const int32_t each = place_bytes(plan.keys, plan.occurrences), before = keys.offsets[bag.column * all.bags];
  for (int32_t p = bag.begin; p < bag.end; ++p)
    keys.places[p] = each == 0
                         ? p - before
                         : static_cast<int32_t>(read_number(words + plan.places_at + int64_t{p - before} * each, each));
}

HCTR_HD inline void finish_column(const HostMessages& all, const HostKeys& keys, int32_t c) {
  HostColumnPlan& plan = keys.columns[c];
  plan.bags = keys.bag_numbers[(c + 1) * all.bags] - keys.bag_numbers[c * all.bags];
  choose_vectors(all, all.column[c], plan);
}

/// The number of a bag's vector, or gradient, where there is one a bag.
HCTR_HD inline int32_t number_of_bag(const HostMessages& all, const HostKeys& keys, int32_t column, int64_t bag) {
  return keys.bag_numbers[bag] - keys.bag_numbers[column * all.bags];
}

/// Bag i of the batch of all ranks: its bag among messages, and its index in [ranks * samples, columns].
struct JoinedBag {
  int64_t bag, index;

  HCTR_HD JoinedBag(const HostMessages& all, const HostJoin& join, int64_t i) {
    const int64_t of_column = join.ranks * join.samples, c = i / of_column, sample = i - c * of_column,
                  rank = sample / join.samples;
    const RankInMessage at = join.of_rank[rank];
    bag = (all.first[at.message] + c) * all.bags + at.index * join.samples + sample - rank * join.samples;
    index = sample * join.columns + c;
  }
};

/// Keys of a bag of the batch of all ranks, how many keys its vectors have, and first keys and bags of a key. least(at,
/// value): at = min(at, value), for all of one key.
template <class Least>
HCTR_HD void join_bag(const HostMessages& all, const HostKeys& read, const std::byte* words, const HostJoin& join,
                      const int32_t* offsets, int64_t* keys, const OwnerLists& lists, int64_t i, const Least& least) {
  const JoinedBag joined(all, join, i);
  const HostBag bag(all, read, joined.bag);
  if (bag.begin == bag.end) return;
  const HostColumnPlan& plan = read.columns[bag.column];
  const auto* const sent = reinterpret_cast<const int64_t*>(words + plan.keys_at);
  const bool answered = all.column[bag.column].answered;
  for (int32_t p = bag.begin, to = offsets[i]; p < bag.end; ++p, ++to) {
    const int32_t place = read.places[p];
    keys[to] = sent[place];
    if (!answered) continue;
    if (plan.vector_a_key) {
      lists.offsets[plan.first_vector + place] = 1;
      least(lists.first[plan.first_vector + place], to);
    }
    if (plan.gradient_a_key) least(lists.of_bags[plan.first_gradient + place], static_cast<int32_t>(joined.index));
  }
  if (!answered) return;
  const int32_t number = number_of_bag(all, read, bag.column, joined.bag);
  if (!plan.vector_a_key) lists.offsets[plan.first_vector + number] = bag.end - bag.begin;
  if (!plan.gradient_a_key) lists.of_bags[plan.first_gradient + number] = static_cast<int32_t>(joined.index);
}

/// The keys of the vectors of a bag, once lists.offsets are known.
HCTR_HD inline void list_joined_bag(const HostMessages& all, const HostKeys& read, const HostJoin& join,
                                    const int32_t* offsets, const OwnerLists& lists, int64_t i) {
  const JoinedBag joined(all, join, i);
  const HostBag bag(all, read, joined.bag);
  if (bag.begin == bag.end || !all.column[bag.column].answered) return;
  const HostColumnPlan& plan = read.columns[bag.column];
  const int32_t number = number_of_bag(all, read, bag.column, joined.bag);
  for (int32_t p = bag.begin, at = offsets[i]; p < bag.end; ++p, ++at) {
    if (!plan.vector_a_key) {
      lists.keys[lists.offsets[plan.first_vector + number] + p - bag.begin] = at;
    } else if (lists.first[plan.first_vector + read.places[p]] == at) {
      lists.keys[lists.offsets[plan.first_vector + read.places[p]]] = at;
    }
  }
}

/// Bag i of HostBags.
struct ListedBag {
  int32_t column;
  int64_t sample, bag;  // rank of the host * samples + sample; among those of HostKeys

  HCTR_HD ListedBag(const HostMessages& all, const HostBags& bags, int64_t i)
      : column(bags.bags[i] % all.columns), sample(bags.bags[i] / all.columns), bag(column * all.bags + sample) {}
};

/// Writes the number of vectors of a bag to lists.offsets, its gradient, and its index at this owner.
HCTR_HD inline void list_bag(const HostMessages& all, const HostKeys& keys, const HostBags& bags, const BagLists& lists,
                             int64_t i) {
  const ListedBag at(all, bags, i);
  if (!all.column[at.column].answered) {
    const int64_t rank = at.sample / bags.samples;
    lists.offsets[i] = lists.gradients[i] = 0;
    lists.own[i] = static_cast<int32_t>(
        (int64_t{bags.ranks[rank]} * bags.samples + at.sample - rank * bags.samples) * bags.own_columns + at.column);
    return;
  }
  const HostColumnPlan& plan = keys.columns[at.column];
  const int32_t begin = keys.offsets[at.bag];
  lists.offsets[i] = plan.vector_a_key ? keys.offsets[at.bag + 1] - begin : 1;
  lists.gradients[i] = 1 + plan.first_gradient +
                       (plan.gradient_a_key ? keys.places[begin] : number_of_bag(all, keys, at.column, at.bag));
  lists.own[i] = 0;
}

/// The vectors of a bag, once lists.offsets are known.
HCTR_HD inline void list_vectors(const HostMessages& all, const HostKeys& keys, const HostBags& bags,
                                 const BagLists& lists, int64_t i) {
  const ListedBag at(all, bags, i);
  const HostColumnPlan& plan = keys.columns[at.column];
  for (int32_t k = lists.offsets[i]; k < lists.offsets[i + 1]; ++k)
    lists.vectors[k] = 1 + plan.first_vector +
                       (plan.vector_a_key ? keys.places[keys.offsets[at.bag] + k - lists.offsets[i]]
                                          : number_of_bag(all, keys, at.column, at.bag));
}

}  // namespace hctr::ops
