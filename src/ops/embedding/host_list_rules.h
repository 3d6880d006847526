// The code for one bag in the functions of host_keys.h that join messages and list vectors. Shared by both devices.
#pragma once

#include "ops/embedding/host_keys_rules.h"

namespace hctr::ops {

/// The index of a non-empty bag among the non-empty bags of its column. If the column has one vector (gradient) per
/// bag, this is the index of the bag's vector (gradient).
HCTR_HD inline int32_t number_of_bag(const HostMessages& all, const HostKeys& keys, int32_t column, int64_t bag) {
  return keys.bag_numbers[bag] - keys.bag_numbers[column * all.bags];
}

/// Bag i of the joined batch of all ranks: its column at this owner, and its bag number in the messages.
struct JoinedBag {
  int64_t column, bag;

  HCTR_HD JoinedBag(const HostMessages& all, const HostJoin& join, int64_t i) {
    const int64_t of_column = join.ranks * join.samples;
    column = i / of_column;
    const int64_t sample = i - column * of_column, rank = sample / join.samples;
    const RankInMessage at = join.of_rank[rank];
    bag = (all.first[at.message] + column) * all.bags + at.index * join.samples + sample - rank * join.samples;
  }
};

/// Copies the keys of bag i of the joined batch. For each vector of the bag, also writes the number of keys; for each
/// key, the first occurrence. least(at, value) sets at = min(at, value).
template <class Least>
HCTR_HD void join_bag(const HostMessages& all, const HostKeys& read, const std::byte* words, const HostJoin& join,
                      const int32_t* offsets, int64_t* keys, const OwnerLists& lists, int64_t i, const Least& least) {
  const HostBag bag(all, read, JoinedBag(all, join, i).bag);
  if (bag.begin == bag.end) return;
  const HostColumnPlan& plan = read.columns[bag.column];
  const auto* const sent = reinterpret_cast<const int64_t*>(words + plan.keys_at);
  for (int32_t p = bag.begin, to = offsets[i]; p < bag.end; ++p, ++to) {
    const int32_t place = read.places[p];
    keys[to] = sent[place];
    if (!plan.vector_a_key) continue;
    lists.offsets[plan.first_vector + place] = 1;
    least(lists.first[plan.first_vector + place], to);
  }
  if (all.column[bag.column].answered && !plan.vector_a_key)
    lists.offsets[plan.first_vector + number_of_bag(all, read, bag.column, bag.at)] = bag.end - bag.begin;
}

/// Lists the keys of the bag's vectors and the gradient numbers of its keys. lists.offsets must be complete.
HCTR_HD inline void list_joined_bag(const HostMessages& all, const HostKeys& read, const HostJoin& join,
                                    const int32_t* offsets, const OwnerLists& lists, int64_t i) {
  const JoinedBag joined(all, join, i);
  const HostBag bag(all, read, joined.bag);
  if (bag.begin == bag.end) return;
  const HostColumnPlan& plan = read.columns[bag.column];
  const bool answered = all.column[bag.column].answered;
  const int32_t number = number_of_bag(all, read, bag.column, bag.at);
  for (int32_t p = bag.begin, at = offsets[i]; p < bag.end; ++p, ++at) {
    const int32_t of_message = plan.vector_a_key ? read.places[p] : number, vector = plan.first_vector + of_message;
    const bool first = !plan.vector_a_key || lists.first[vector] == at;
    if (answered && first) lists.keys[lists.offsets[vector] + (plan.vector_a_key ? 0 : p - bag.begin)] = at;
    if (!lists.gradients) continue;
    lists.gradients[at] = !answered              ? static_cast<int32_t>(bag.number * join.columns + joined.column)
                          : !plan.gradient_a_key ? lists.received + plan.first_gradient + number
                          : first                ? lists.received + plan.first_gradient + of_message
                                                 : lists.zero;
  }
}

/// Bag i of HostBags: its column, sample, and bag number in HostKeys.
struct ListedBag {
  int32_t column;
  int64_t sample, bag;  // sample: rank on the host * samples + sample

  HCTR_HD ListedBag(const HostMessages& all, const HostBags& bags, int64_t i)
      : column(bags.bags[i] % all.columns), sample(bags.bags[i] / all.columns), bag(column * all.bags + sample) {}
};

/// Writes three values of bag i: its number of vectors (to lists.offsets), its gradient number, and its index among the
/// bags of own columns.
HCTR_HD inline void list_bag(const HostMessages& all, const HostKeys& keys, const HostBags& bags, const BagLists& lists,
                             int64_t i) {
  const ListedBag at(all, bags, i);
  const bool answered = all.column[at.column].answered;
  const HostColumnPlan& plan = keys.columns[at.column];
  lists.offsets[i] = !answered ? 0 : plan.vector_a_key ? keys.offsets[at.bag + 1] - keys.offsets[at.bag] : 1;
  lists.own[i] = answered ? 0 : static_cast<int32_t>(at.sample * bags.own_columns + at.column);
  if (lists.gradients)
    lists.gradients[i] = answered ? 1 + plan.first_gradient + number_of_bag(all, keys, at.column, at.bag) : 0;
}

/// Lists the vector numbers of bag i. lists.offsets must be complete.
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
