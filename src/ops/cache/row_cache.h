// A cache of table rows in GPU memory for inference: kernels look rows up without locks while other kernels replace
// rows.
//
// A pool stores rows of one width for all tables of that width (flat cache: M. Xie et al., "Fleche", EuroSys 2022). A
// pool is a set-associative index with 16 entries per set, and an array of rows. An entry is one 64-bit word: 32 bits
// of the key's hash, and a row number. The full key is in the head of the row. One store therefore changes an entry,
// and one lookup reads a 128-byte line of entries, a head and a row.
//
// A row never changes while a lookup may read the row (read-copy-update: P. McKenney and J. Slingwine, 1998). New
// values are written to a free row, and then the entry is pointed at the new row. The old row is retired. It becomes
// free when all lookups that were running at its retirement have ended. Each lookup therefore stores its start epoch in
// a session, and clears the epoch when it ends.
//
// The generation is odd while an update sets entries or marks them as stale. A lookup that saw an odd generation, or
// another generation than its caller, sets `mixed` in its answer: some of its rows may be older than the update, and
// others newer. The caller then repeats the lookup. After the update, new rows replace the stale rows piece by piece.
// Until then, lookups that list misses report keys of stale rows as misses.
#pragma once

#include <cstdint>

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// Storage type of a pool's elements. fp8 and int8 have one scale per row.
enum class CachedType : uint8_t { f32, f16, bf16, fp8, int8 };

inline constexpr int kCacheWays = 16;
inline constexpr int kCacheSessions = 64;

/// The header of a row. `scale` is NaN if the key is known to have no row in its table.
struct CacheHead {
  int64_t key;
  int32_t space;
  float scale;
};

struct CacheCounts {
  uint32_t free_rows;  ///< size of the stack CachePool::free
  uint32_t retired;    ///< size of the list CachePool::retired
  uint32_t refused;    ///< keys that found no free row or no free entry
  uint32_t evicted;    ///< keys that were replaced by new keys
  uint32_t keys;       ///< keys that have an entry
};

/// One pool. All arrays are on the device.
struct CachePool {
  uint64_t* entries = nullptr;  // [sets, kCacheWays] hash bits << 32 | stale << 31 | row + 1; 0: empty
  uint8_t* used = nullptr;      // [sets, kCacheWays] era of the entry's last lookup
  uint32_t* locks = nullptr;    // [sets] a lock per set for kernels that set entries
  CacheHead* heads = nullptr;   // [row_capacity]
  std::byte* rows = nullptr;    // [row_capacity, row_bytes]
  uint32_t* free = nullptr;     // [row_capacity] stack of free row numbers
  uint32_t* retired = nullptr;  // [row_capacity]
  CacheCounts* counts = nullptr;
  uint32_t sets = 0;
  uint32_t row_capacity = 0;
  int32_t dim = 0, row_bytes = 0;  // row_bytes: a multiple of 16
  CachedType type = CachedType::f32;
  /// The pool contains every key of its tables. No key is evicted, a full set overflows into the next set, and a key
  /// without an entry has no row.
  bool whole = false;
};

/// State of one running lookup.
struct alignas(32) CacheSession {
  unsigned long long epoch;   ///< CacheLookup::epoch; 0: no lookup is running
  uint32_t mixed;             ///< nonzero: a block read another generation than CacheLookup::generation
  uint32_t misses, defaults;  ///< counts so far: misses, and keys that got the default
  uint32_t blocks;            ///< blocks that have ended
};

/// State that all pools of a cache share, on the device.
struct CacheState {
  unsigned long long epoch;  ///< starts at 1
  uint32_t generation;       ///< odd while an update sets entries
  uint32_t era;              ///< lookups write the lower eight bits to CachePool::used
  uint32_t applying;         ///< nonzero: `whole` pools may lack keys, because an update has not added them yet
  CacheSession sessions[kCacheSessions];
};

/// A key that is not in the cache, or whose row is stale. The key belongs to vector `item` and to part `part`; `at` is
/// its index among the keys of all parts.
struct CacheMiss {
  int64_t key, item;
  int32_t part, at;
};

/// The counters that a lookup reports. The answer may be in page-locked host memory. The GPU writes it last, as two
/// 64-bit words in any order. Each word contains the ticket, so the words need no fence between them.
struct alignas(16) CacheAnswer {
  uint32_t misses;  ///< missing keys, duplicates included
  uint32_t ticket;
  uint32_t defaults : 31;  ///< keys that got the default: keys known to have no row, and misses that are not listed
  uint32_t mixed : 1;      ///< some rows may be older than an update, and others newer
  uint32_t ticket_again;
};

/// One table's part of a lookup: the vectors from first_item up to the first_item of the next part.
struct CachePart {
  int32_t pool = 0, space = 0;
  int64_t first_item = 0;
  int64_t first_key = 0;  ///< index of the part's first key among the keys of all parts
  const int64_t* keys = nullptr;
  const int64_t* offsets = nullptr;  ///< [vectors + 1] offsets of bags in `keys`; null: one vector per key
  Combiner combiner = Combiner::sum;
  float* out = nullptr;
  int64_t stride = 0;       ///< elements between the starts of adjacent vectors
  float default_value = 0;  ///< element value for a key without a row
};

/// A lookup: the keys of one or more tables, and the output vectors. All arrays are on the device; `keys` of parts may
/// also be in page-locked host memory.
struct CacheLookup {
  const CachePool* pools = nullptr;
  static constexpr int32_t kFewParts = 4;
  // [part_count], by ascending first_item; null: the parts are in few_parts
  const CachePart* parts = nullptr;
  int32_t part_count = 0;
  CachePart few_parts[kFewParts];
  HCTR_HD const CachePart& part(int32_t p) const { return parts ? parts[p] : few_parts[p]; }
  int32_t most_dim = 0;   // largest dim of `pools`
  bool only_f32 = false;  // all of `pools` store f32
  bool has_bags = false;  // at least one part has offsets
  int64_t items = 0;      // number of vectors of all parts
  int64_t keys = 0;       // number of keys of all parts
  /// [keys of all parts] place of each key: a row number or a kPlace constant. Written if a part has offsets, and read
  /// by cache_fill(). Null if no part has offsets.
  int32_t* places = nullptr;
  CacheMiss* misses = nullptr;  // [keys of all parts]; may be in page-locked host memory
  CacheState* state = nullptr;
  int32_t session = 0;
  /// The epoch and the generation of the cache, read before the lookup is queued. If `epoch` is no longer the current
  /// epoch, changes are only delayed. If `generation` is no longer the current generation, the lookup reports `mixed`.
  /// The CPU reads the current values from `state` instead.
  uint64_t epoch = 1;
  uint32_t generation = 0;
  CacheAnswer* answer = nullptr;
  uint32_t ticket = 0;
  /// True: lists misses, and keeps the session open until cache_fill(). False: a missing key gets the default.
  bool lists_misses = false;
  bool takes_stale = false;  ///< true: a key with a stale row is not a miss
};

/// Writes the vectors of all items. A pooled vector adds its rows in key order, then multiplies by the weight, like
/// StoreView::get_pooled(): the results are equal bit for bit. A key without a row contributes default_value. With
/// lists_misses, vectors of missing keys are undefined until cache_fill().
HCTR_OP(void cache_lookup(Context&, const CacheLookup&))

/// The row of a missing key: the elements of CacheFill::values from index `first`, or the default if `first` is
/// negative.
struct CacheFound {
  int32_t part, at;
  int64_t first;
};
/// The rows of missing keys of a lookup, and the bags to recompute. A lookup's misses may be divided among several
/// fills; the last one has the bags.
struct CacheFill {
  const CacheFound* found = nullptr;  // [found_count]
  int64_t found_first = 0;            ///< this fill begins here; earlier fills processed the elements before
  int64_t found_count = 0;
  bool ends = true;  ///< the last fill of the lookup
  const float* values = nullptr;
  // [bag_count] the bags of pooled parts, as ascending vector numbers; only bags with a missing key
  const int64_t* bags = nullptr;
  int64_t bag_count = 0;
};
/// Writes the vectors that have missing keys. The last fill ends the session. All arrays are on the device or in
/// page-locked host memory.
HCTR_OP(void cache_fill(Context&, const CacheLookup&, const CacheFill&))
/// Ends the session of a lookup that listed misses. The vectors with misses stay undefined.
HCTR_OP(void cache_leave(Context&, CacheState*, int32_t session))

/// Rows to insert, update or remove in a pool. Keys are unique. All arrays are on the device or in page-locked host
/// memory.
struct CacheChange {
  const int64_t* keys = nullptr;    // [count]
  const int32_t* spaces = nullptr;  // [count]; null: all keys belong to `space`
  int32_t space = 0;
  const float* rows = nullptr;  // [count, dim]
  // [count] not 0: the key is known to have no row; null: all keys have a row, or none if `rows` is null
  const uint8_t* absent = nullptr;
  uint32_t* taken = nullptr;  // [count] the free row that cache_write() allocated, + 1; 0: none
  int64_t count = 0;
  bool only_present = false;  ///< skips keys that have no entry
  HCTR_HD int32_t space_of(int64_t i) const { return spaces ? spaces[i] : space; }
  HCTR_HD bool is_absent(int64_t i) const { return absent ? absent[i] != 0 : rows == nullptr; }
};

/// Allocates free rows and writes the new values to these rows. No lookup reads the rows before cache_set().
HCTR_OP(void cache_write(Context&, const CachePool&, const CacheChange&))
/// Points the entries of keys at the rows that cache_write() allocated. In a full set, a new key evicts the least
/// recently used key.
HCTR_OP(void cache_set(Context&, const CachePool&, const CacheState*, const CacheChange&))
/// Marks the keys' rows as stale, until cache_set() replaces them.
HCTR_OP(void cache_mark(Context&, const CachePool&, const CacheChange&))
/// Removes the keys' entries and retires their rows.
HCTR_OP(void cache_remove(Context&, const CachePool&, const CacheChange&))
/// cache_begin_update() and cache_end_update() bracket changes after which lookups return other rows. A lookup that
/// overlaps the bracket reports `mixed`. Insertions, evictions, and new rows for stale keys need no bracket.
HCTR_OP(void cache_begin_update(Context&, CacheState*))
HCTR_OP(void cache_end_update(Context&, CacheState*))
/// Sets CacheState::applying. A lookup that sees the new value also sees all changes that were queued before this call.
HCTR_OP(void cache_set_applying(Context&, CacheState*, bool applying))
/// Begins the next epoch. Lookups of earlier epochs may still read retired rows.
HCTR_OP(void cache_next_epoch(Context&, CacheState*))
/// Moves all retired rows to the free stack. Every lookup that began before the retirement must have ended.
HCTR_OP(void cache_reclaim(Context&, const CachePool&))
/// Sets the era that lookups write to the entries they read.
HCTR_OP(void cache_set_era(Context&, CacheState*, uint32_t era))

/// Initializes an empty pool whose arrays are zero: all rows become free.
HCTR_OP(void cache_clear(Context&, const CachePool&))

/// One key of a pool, with the era of its last lookup.
struct CacheListed {
  CacheHead head;
  uint32_t era, row;
};
/// Lists all keys that have an entry. Shapes: listed [row_capacity], count [1]. The pool must not change during the
/// call.
HCTR_OP(void cache_list(Context&, const CachePool&, CacheListed* listed, uint32_t* count))

}  // namespace hctr::ops
