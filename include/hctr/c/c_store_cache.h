/* Part of huge_ctr.h: caches of a store's rows in GPU memory. hctr/store_cache.h documents the fields and calls of the
 * same names. */
#ifndef HCTR_C_STORE_CACHE_H
#define HCTR_C_STORE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"
#include "hctr/c/c_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cache is thread-safe, and keeps its store alive. */
typedef struct hctr_store_cache hctr_store_cache;

enum { HCTR_GPU_IF_ANY = -2, HCTR_NO_GPU = -1 };

/* The part of a request for one table. */
typedef struct hctr_store_lookup {
  size_t size;
  size_t table; /* as in hctr_store_view_table() */
  int32_t slot;
  hctr_array keys;    /* [keys], i32 u32 i64 u64; on the cache's GPU: i64 or u64 */
  hctr_array offsets; /* [bags + 1], i32 i64, in host memory like the keys; on the GPU: i64. data NULL: a row per key */
  int32_t pooling;    /* with offsets: HCTR_SUM, HCTR_MEAN, HCTR_SQRTN */
  hctr_array vectors; /* f32 [keys or bags, dim], any row stride, in host memory or on the cache's GPU */
} hctr_store_lookup;

typedef struct hctr_store_cache_state {
  size_t size;
  const char* version; /* valid until this thread's next call */
  int32_t gpu;
  int64_t whole_tables; /* number of tables whose rows are all in the cache */
  int64_t keys, bytes, requests, asked, misses, defaults, admitted, evicted, updated, repeated, bypassed;
} hctr_store_cache_state;

/* Creates a cache for the active version of a model, with the "gpu_cache" section of the store's config. gpu: the index
 * of a GPU; HCTR_NO_GPU: the store's levels answer, on the host; HCTR_GPU_IF_ANY: GPU 0, or HCTR_NO_GPU if there is no
 * GPU, which is an error with "needs_gpu". */
HCTR_API hctr_status hctr_store_cache_create(hctr_store* store, const char* model, int32_t gpu,
                                             hctr_store_cache** cache);
HCTR_API void hctr_store_cache_destroy(hctr_store_cache* cache);
/* Looks up rows in several tables, in one state of the version. lookups: contiguous, each lookups[0].size bytes.
 * stream: the cudaStream_t in whose order keys are read and vectors on the GPU are written; NULL: the default stream,
 * and the vectors are complete when the call returns. Vectors in host memory are always complete then. missing:
 * receives the number of occurrences of keys that got the default row; may be NULL. */
HCTR_API hctr_status hctr_store_cache_look_up(hctr_store_cache* cache, const hctr_store_lookup* lookups, size_t count,
                                              void* stream, int64_t* missing);
/* Activates another version in the store, after its cache has the most recently used keys of this version. */
HCTR_API hctr_status hctr_store_cache_activate(hctr_store_cache* cache, const char* version);
/* Creates a view of the version that the cache uses now. */
HCTR_API hctr_status hctr_store_cache_view(hctr_store_cache* cache, hctr_store_view** view);
HCTR_API hctr_status hctr_store_cache_statistics(hctr_store_cache* cache, hctr_store_cache_state* state);

#ifdef __cplusplus
}
#endif

#endif
