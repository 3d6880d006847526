// The keys that the ranks of one host ask an owner on another host for, as they are sent: each key of a column once,
// and for each occurrence the place of its key, from which the owner rebuilds the keys of every rank. See
// docs/distributed.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hctr {

/// What sender and receiver know before a message.
struct HostKeysShape {
  struct Column {
    int32_t most_keys = 1;     ///< of a bag
    bool sums_of_keys = true;  ///< whether the sum of the vectors of a bag's keys, as sent, is the vector of the bag
  };
  std::vector<Column> columns;  ///< of the owner
  int64_t ranks = 0;            ///< of the host
  int64_t samples = 0;          ///< of each rank
  int64_t vector_bytes = 0;

  int64_t bags() const { return ranks * samples; }  ///< of a column
};

/// Keys of one rank for one owner, as ops::WireKeys: bags, column * samples + sample, are ascending.
struct RankKeys {
  std::span<const int64_t> keys;
  std::span<const int32_t> bags;
};

/// Lists of numbers, one behind the other: list i is numbers[offsets[i]] up to numbers[offsets[i + 1]].
struct NumberLists {
  std::vector<int32_t> offsets{0}, numbers{};

  int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
  void end_list() { offsets.push_back(static_cast<int32_t>(numbers.size())); }
};

class HostKeys {
 public:
  HostKeys() = default;
  /// `of_ranks`: of the ranks of the host, in their order.
  HostKeys(const HostKeysShape&, std::span<const RankKeys> of_ranks);
  /// Reads what message() wrote. Errors: Error(bug) if that was for another shape.
  static HostKeys read(const HostKeysShape&, std::span<const int64_t> message);

  /// In words of 64 bits:
  ///
  ///   int32 [columns, 2]             number of keys, number of occurrences
  ///   int64 [keys]                   by column
  ///   by column, in bytes:
  ///     how many keys each bag has     nothing if each has its only possible key; else, whichever is shorter, bits,
  ///                                    bytes or words [bags], or the bag of each occurrence [occurrences]
  ///     place of each occurrence       nothing if keys are as many as occurrences; else 1, 2 or 4 bytes each
  std::vector<int64_t> message(const HostKeysShape&) const;

  /// Vectors that the owner answers with, by column: one for each key, or one for each bag that has a key, whichever is
  /// less. Both sides know it from the message.
  int64_t vectors() const { return vectors_; }
  /// For each rank of the host and each of its bags that has a key, in order: the vectors whose sum is that of the bag.
  std::vector<NumberLists> vectors_of_bags(const HostKeysShape&) const;

  /// A key as it occurs.
  struct Occurrence {
    int64_t rank, column, sample;  ///< rank: of the host
    int32_t in_bag;
    int64_t key;
  };
  /// Calls body(Occurrence) for all, by column, then rank, then sample; `samples` is that of the shape. Of one rank
  /// they are in the order of RankKeys.
  template <class Body>
  void for_each(int64_t samples, const Body& body) const {
    int64_t bag = 0, occurrence = 0, first_key = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
      for (const int64_t end = bag + columns_[c].bags; bag < end; ++bag) {
        const auto number = int64_t{bags_[static_cast<size_t>(bag)]};
        for (int32_t i = 0; i < lengths_[static_cast<size_t>(bag)]; ++i, ++occurrence) {
          const int32_t place = places_[static_cast<size_t>(occurrence)];
          body(Occurrence{number / samples, static_cast<int64_t>(c), number % samples, i,
                          keys_[static_cast<size_t>(first_key + place)]});
        }
      }
      first_key += columns_[c].keys;
    }
  }
  /// For each vector, the occurrences whose rows it is the sum of, as for_each() counts them.
  NumberLists occurrences_of_vectors() const;

 private:
  struct Column {
    int32_t keys = 0, occurrences = 0, bags = 0;
    bool vector_a_key = false;
  };
  void add_column(const HostKeysShape&, size_t column, std::span<const int64_t> keys);
  void choose_vectors(const HostKeysShape&);

  std::vector<Column> columns_;
  std::vector<int64_t> keys_;            // by column, in the order of their first occurrences
  std::vector<int32_t> places_;          // of each occurrence: its key, counted from the column's first
  std::vector<int32_t> bags_, lengths_;  // of each bag with a key, by column: rank * samples + sample; its keys
  int64_t vectors_ = 0;
};

}  // namespace hctr
