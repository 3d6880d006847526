// A cache of table rows in GPU memory for inference: kernels look rows up without locks while others are exchanged.
//
// Rows of one width form a pool, whichever table they belong to (flat cache: M. Xie et al., "Fleche", EuroSys 2022). A
// pool is an index of sets of 16 entries, and rows. An entry is one word: 32 bits of the key's hash, and the number of
// a row; the key itself is in the head of the row. So an entry changes in one store, and a look-up reads one line of
// 128 bytes, a head and a row.
//
// A row never changes while a look-up may read it (read-copy-update: P. McKenney and J. Slingwine, 1998). New values go
// to a free row, then the entry is set to it; the old row is retired, and becomes free once the look-ups that were
// under way have ended. Each look-up therefore notes the epoch in which it began in its session, and clears it at its
// end.
//
// Entries of one update are set while the generation is odd. A look-up that saw two generations says so in its answer:
// it may have rows of before and after, and is repeated.
#pragma once

#include <cstdint>

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// How a pool stores elements. The last two have one scale a row.
enum class CachedType : uint8_t { f32, f16, bf16, fp8, int8 };

inline constexpr int kCacheWays = 16;
inline constexpr int kCacheSessions = 64;

/// Of a row. `scale` is NaN where the key is known to have no row anywhere.
struct CacheHead {
  int64_t key;
  int32_t space;
  float scale;
};

struct CacheCounts {
  uint32_t free_rows;  ///< on the stack
  uint32_t retired;    ///< in the list
  uint32_t refused;    ///< keys for which no row was free, or no entry
  uint32_t evicted;    ///< keys that gave way to others
  uint32_t keys;       ///< that have an entry
};

/// One pool. All arrays are on the device.
struct CachePool {
  uint64_t* entries = nullptr;  // [sets, kCacheWays] hash bits << 32 | row + 1; 0: empty
  uint8_t* used = nullptr;      // [sets, kCacheWays] the era in which a look-up last read it
  uint32_t* locks = nullptr;    // [sets] of kernels that set entries
  CacheHead* heads = nullptr;   // [row_capacity]
  std::byte* rows = nullptr;    // [row_capacity, row_bytes]
  uint32_t* free = nullptr;     // [row_capacity] a stack
  uint32_t* retired = nullptr;  // [row_capacity]
  CacheCounts* counts = nullptr;
  uint32_t sets = 0;
  uint32_t row_capacity = 0;
  int32_t dim = 0, row_bytes = 0;  // row_bytes: a multiple of 16
  CachedType type = CachedType::f32;
  /// Every key of its tables is here: nothing is evicted, a full set continues in the next, and a key without an entry
  /// has no row.
  bool whole = false;
};

/// A look-up under way.
struct CacheSession {
  unsigned long long epoch;   ///< in which it began; 0: none is under way
  uint32_t generation;        ///< that its first block saw, + 1
  uint32_t mixed;             ///< another block saw another one, or an odd one
  uint32_t misses, defaults;  ///< so far
  uint32_t blocks;            ///< that have ended
};

/// What all pools of a cache share. On the device.
struct CacheState {
  unsigned long long epoch;  ///< from 1 on
  uint32_t generation;       ///< odd while entries of an update are set
  uint32_t era;              ///< of which the lower eight bits mark entries as used
  CacheSession sessions[kCacheSessions];
};

/// A key that the cache does not have: the part that asks for it, its place among the keys of all parts, and the vector
/// that it belongs to.
struct CacheMiss {
  int64_t key, item;
  int32_t part, at;
};

/// What a look-up says of itself. May be page-locked memory of the host; `ticket` is written last.
struct CacheAnswer {
  uint32_t misses;  ///< keys, as often as they occur
  uint32_t
      defaults;    ///< keys that were given the default: those known to have no row, and without `lists_misses` misses
  uint32_t mixed;  ///< not 0: some rows may be from before an update and others from after
  uint32_t ticket;
};

/// One table's part of a look-up: vectors [first_item, first_item of the next part).
struct CachePart {
  int32_t pool = 0, space = 0;
  int64_t first_item = 0;
  int64_t first_key = 0;  ///< the number of its first key among those of all parts
  const int64_t* keys = nullptr;
  const int64_t* offsets = nullptr;  ///< [vectors + 1] in `keys`; null: a vector for each key
  Combiner combiner = Combiner::sum;
  float* out = nullptr;
  int64_t stride = 0;       ///< elements from one vector to the next
  float default_value = 0;  ///< of each element of a key without a row
};

/// Keys of one or more tables, and where their vectors go. All on the device.
struct CacheLookup {
  const CachePool* pools = nullptr;
  const CachePart* parts = nullptr;  // [part_count], by ascending first_item
  int32_t part_count = 0;
  int32_t most_dim = 0;   // of these pools
  bool only_f32 = false;  // all of them store f32
  int64_t items = 0;      // vectors of all parts
  /// [keys of all parts] the row of each key of a bag, for cache_fill(); null where misses are not listed.
  int32_t* places = nullptr;
  CacheMiss* misses = nullptr;  // [keys of all parts]; may be page-locked memory of the host
  CacheState* state = nullptr;
  int32_t session = 0;
  CacheAnswer* answer = nullptr;
  uint32_t ticket = 0;
  /// Misses are listed, and the session stays until cache_fill(); otherwise they get the default.
  bool lists_misses = false;
};

/// Writes the vectors of all items. Sums add rows in the order of their keys and multiply by the weight, so they have
/// the bits of StoreView::get_pooled(). A key without a row contributes default_value. With lists_misses the vectors of
/// keys that are missing have arbitrary elements until cache_fill().
HCTR_OP(void cache_lookup(Context&, const CacheLookup&))

/// The row of a missing key: elements from `first` of CacheFill::values, or the default where it is negative.
struct CacheFound {
  int32_t part, at;
  int64_t first;
};
/// A bag with a missing key: vector `item` of all.
struct CacheFill {
  const CacheFound* found = nullptr;  // [found_count]: every miss of the look-up
  int64_t found_count = 0;
  const float* values = nullptr;
  const int64_t* bags = nullptr;  // [bag_count] numbers of vectors with such keys, ascending; of pooled parts
  int64_t bag_count = 0;
};
/// Writes the vectors that lacked rows, and ends the session. All arrays on the device, or page-locked on the host.
HCTR_OP(void cache_fill(Context&, const CacheLookup&, const CacheFill&))
/// Ends the session of a look-up that listed misses, without answers.
HCTR_OP(void cache_leave(Context&, CacheState*, int32_t session))

/// Rows that come into a pool or change there. One key occurs once. All on the device, or page-locked on the host.
struct CacheChange {
  const int64_t* keys = nullptr;    // [count]
  const int32_t* spaces = nullptr;  // [count]
  const float* rows = nullptr;      // [count, dim]
  const uint8_t* absent = nullptr;  // [count] not 0: the key is known to have no row; null: all have one
  uint32_t* taken = nullptr;        // [count] the free rows that cache_write() took, + 1; 0: none
  int64_t count = 0;
  bool only_present = false;  ///< keys without an entry stay without one
  bool only_untaken = false;  ///< of cache_remove(): the keys for which cache_write() took no row
};

/// Writes rows to free ones. Nobody reads them before cache_set().
HCTR_OP(void cache_write(Context&, const CachePool&, const CacheChange&))
/// Sets the entries of keys to the rows that cache_write() took. In a full set a new key evicts the one that was used
/// longest ago.
HCTR_OP(void cache_set(Context&, const CachePool&, const CacheState*, const CacheChange&))
/// Empties the entries of keys.
HCTR_OP(void cache_remove(Context&, const CachePool&, const CacheChange&))
/// Around the entries of an update: look-ups between or across say that they are mixed. Entries of rows that only come
/// or go, and are the same elsewhere, are set without.
HCTR_OP(void cache_begin_update(Context&, CacheState*))
HCTR_OP(void cache_end_update(Context&, CacheState*))
/// Begins another epoch: rows that have retired may be in use by look-ups of the ones before.
HCTR_OP(void cache_next_epoch(Context&, CacheState*))
/// Makes all retired rows free. No look-up that began before they retired may be under way.
HCTR_OP(void cache_reclaim(Context&, const CachePool&))
/// Sets the era, by which entries that are read from now on are marked.
HCTR_OP(void cache_set_era(Context&, CacheState*, uint32_t era))

/// Sets up an empty pool whose arrays are zero: all rows are free.
HCTR_OP(void cache_clear(Context&, const CachePool&))

/// One key of a pool with the era of its last use.
struct CacheListed {
  CacheHead head;
  uint32_t era, row;
};
/// Lists all keys with an entry. Shapes: listed [row_capacity], count one number. For the host, with nobody changing.
HCTR_OP(void cache_list(Context&, const CachePool&, CacheListed* listed, uint32_t* count))

}  // namespace hctr::ops
