// The cases of `bench cache`: tables, requests and caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/stream.h"
#include "hctr/store.h"
#include "hctr/store_cache.h"

namespace hctr::bench {

struct CacheCase {
  std::string name;
  int64_t rows, dim, keys;  // keys: number of keys per request
  double alpha;             // exponent of the keys' power law
  double share;             // fraction of rows that fit into the cache; 1: the cache has the whole table
  int64_t keys_of_bag = 1;  // keys per bag; 1: one vector per key
  bool keys_there = false;  // the keys of requests are in device memory
  StoreCacheOptions::Rows type = StoreCacheOptions::Rows::f32;
};

/// Returns the key with this frequency rank. Rank 0 is the most frequent key.
int64_t key_by_rank(int64_t rank, int64_t rows);
/// Draws a frequency rank from the power law of the case.
int64_t drawn_rank(const CacheCase&, uint64_t number);

/// Loads the table of a case.
void load(Store&, const CacheCase&);
/// Returns the options of a case's cache.
StoreCacheOptions options_of(const CacheCase&);
std::string shape_of(const CacheCase&);

/// Requests of a case, and memory for their vectors.
class Requests {
 public:
  /// `first`: number of the first set of keys. Sets with different numbers have different keys.
  Requests(StreamRef, const CacheCase&, int sets, int first = 0);
  StoreCache::Part part(int i) const;

 private:
  const CacheCase& of_;
  std::vector<std::vector<int64_t>> keys_;
  std::vector<int64_t> offsets_;
  std::vector<Buffer> there_;  // one buffer for the offsets, then one for the keys of each set
  Buffer vectors_;
};

/// Runs a request and waits for its vectors. Returns the time in seconds. `returned`: receives the time until the call
/// returned. If no key is missing in the cache, all vectors are complete at that time.
double ask(StoreCache&, const Requests&, int i, StreamRef, double* returned = nullptr);

}  // namespace hctr::bench
