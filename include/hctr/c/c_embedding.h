/* Part of huge_ctr.h: embedding sets. hctr/embedding.h documents the fields and calls of the same names. */
#ifndef HCTR_C_EMBEDDING_H
#define HCTR_C_EMBEDDING_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hctr_embedding hctr_embedding;

enum { HCTR_SUM = 0, HCTR_MEAN = 1, HCTR_SQRTN = 2, HCTR_MAX = 3, HCTR_NONE = 4 }; /* pooling */
enum {                                                                             /* optimizers */
       HCTR_NO_OPTIMIZER = 0,
       HCTR_SGD = 1,
       HCTR_MOMENTUM_SGD = 2,
       HCTR_NESTEROV = 3,
       HCTR_ADAGRAD = 4,
       HCTR_RMSPROP = 5,
       HCTR_FTRL = 6,
       HCTR_ADAM = 7,
       HCTR_ADAMW = 8,
       HCTR_ADAMAX = 9,
       HCTR_ADADELTA = 10
};
enum { HCTR_LOCAL = 0, HCTR_GLOBAL = 1, HCTR_LAZY_GLOBAL = 2 }; /* hctr_optimizer.rows: rows that an update changes */
enum { HCTR_FORMULA_CONFIG = 0, HCTR_FORMULA_TORCH = 1, HCTR_FORMULA_KERAS = 2 }; /* formulas of optimizers */
enum { HCTR_UNIFORM = 0, HCTR_NORMAL = 1, HCTR_CONSTANT = 2, HCTR_BY_ROWS = 3 };  /* initial values */
enum { HCTR_ROWS_F32 = 0, HCTR_ROWS_F16 = 1, HCTR_ROWS_BF16 = 2 };                /* formats of rows */
enum {
  HCTR_PLACE_AUTOMATIC = 0,
  HCTR_PLACE_WHOLE = 1,
  HCTR_PLACE_SPREAD = 2,
  HCTR_PLACE_REPLICATED = 3
}; /* placement of rows on ranks */
enum { HCTR_FULL_ERROR = 0, HCTR_EVICT_LRU = 1, HCTR_EVICT_LFU = 2, HCTR_IGNORE = 3 }; /* when a table is full */

/* A rank of a group that shares embedding tables (hctr/ranks.h). Calls marked "Collective" in hctr/embedding.h wait for
 * the other ranks of the group. */
typedef struct hctr_rank hctr_rank;
/* Returns the value of an environment variable, valid until the next call; NULL: the variable is not set. Called by any
 * thread. */
typedef const char* (*hctr_environment)(void* user, const char* name);

typedef struct hctr_join {
  size_t size;
  int32_t ranks;       /* ranks in this process; 0 selects 1 */
  const char* address; /* address of process 0; NULL: given by the launcher's environment variables, if any */
  int32_t port;
  int32_t process;
  int32_t processes;       /* 0 selects 1 */
  const char* secret;      /* NULL: none */
  int32_t call_seconds;    /* 0 selects 60; negative: no timeout */
  int32_t join_seconds;    /* 0 selects 300 */
  int32_t silence_seconds; /* 0 selects 20 */
  hctr_environment environment;
  void* environment_user;
  hctr_log log;
  void* log_user;
} hctr_join;

/* ranks: [ranks of this process]. Each handle is used by one thread at a time. An embedding set holds a reference to
 * its rank. Destroy the handle when the sets are created: the rank then counts as lost when its sets are destroyed, and
 * the other ranks are notified. */
HCTR_API hctr_status hctr_ranks_create(const hctr_join* join, hctr_rank** ranks);
HCTR_API void hctr_rank_destroy(hctr_rank* rank);
HCTR_API hctr_status hctr_rank_number(const hctr_rank* rank, int32_t* number, int32_t* of);

typedef struct hctr_optimizer {
  size_t size;
  int32_t rule, rows, formula;
  int32_t row_wise;
  float beta1, beta2, epsilon, momentum, smoothing, initial;
  float beta, lambda1, lambda2, weight_decay, most_gradient;
} hctr_optimizer;
/* Returns the defaults of a rule (HCTR_SGD, ...) in a config, torch.optim or tf.keras.optimizers. */
HCTR_API hctr_status hctr_optimizer_defaults(int32_t rule, int32_t formula, hctr_optimizer* optimizer);

typedef struct hctr_table {
  size_t size;
  const char* name;
  int64_t dim;
  int64_t rows;
  int32_t format;
  const hctr_optimizer* optimizer; /* NULL: Adam with the values of hctr_optimizer_defaults() */
  int32_t initial;
  float initial_value; /* 0 with HCTR_UNIFORM selects 0.05 */
  int64_t most_rows;
  int32_t when_full;
  int64_t min_count;        /* 0 selects 1 */
  double admit_probability; /* 0 selects 1 */
  int64_t expire_after;
  int32_t marks_changes;
  int32_t placement; /* HCTR_PLACE_... */
  int32_t whole_on;  /* HCTR_PLACE_WHOLE: 1 + the owner rank; 0: chosen automatically */
} hctr_table;

typedef struct hctr_feature {
  size_t size;
  const char* name;
  const char* table;
  int32_t pooling;
  int32_t weighted;
} hctr_feature;

/* Returns device memory aligned to 256 bytes for work on the stream; NULL: out of memory. */
typedef void* (*hctr_allocate)(size_t bytes, void* stream, void* user);
typedef void (*hctr_free)(void* memory, size_t bytes, void* stream, void* user);

typedef struct hctr_embedding_options {
  size_t size;
  const hctr_table* tables; /* contiguous, each of tables[0].size bytes; `features` in the same way */
  size_t table_count;
  const hctr_feature* features;
  size_t feature_count;
  int32_t gpu;     /* -1: the CPU. Always set this field: 0 is the first GPU */
  void* stream;    /* cudaStream_t; NULL: the default stream */
  int32_t threads; /* 0 selects 1 */
  uint64_t seed;
  int32_t batches;      /* 0 selects 2 */
  int64_t most_keys;    /* 0 selects 2^24 */
  int64_t device_bytes; /* 0: the free memory */
  int64_t host_bytes;
  const char* disk; /* NULL: none */
  int64_t disk_bytes;
  const hctr_rank* rank;  /* NULL: no group; this set has all rows */
  hctr_allocate allocate; /* NULL: the driver allocates */
  hctr_free free;
  void* allocator_user;
} hctr_embedding_options;

/* The keys of one feature in a batch. */
typedef struct hctr_feature_keys {
  size_t size;
  hctr_array keys;    /* [count], i32 u32 i64 u64 */
  hctr_array offsets; /* [samples + 1], i32 i64; data NULL: one key per sample */
  hctr_array weights; /* [count], f32; data NULL: all weights are 1 */
} hctr_feature_keys;

typedef struct hctr_update {
  size_t size;
  float learning_rate;
  const float* rate_on_device;
  float loss_scale; /* 0 selects 1 */
  const float* skip;
} hctr_update;

typedef struct hctr_row_gradients {
  size_t size;
  int64_t* keys;
  float* values;
} hctr_row_gradients;

HCTR_API hctr_status hctr_embedding_create(const hctr_embedding_options* options, hctr_embedding** embedding);
HCTR_API void hctr_embedding_destroy(hctr_embedding* embedding);
HCTR_API hctr_status hctr_embedding_set_stream(hctr_embedding* embedding, void* stream);
/* keys, vectors: [features]. Each element of vectors is f32 [samples, dim], or [count, dim] with HCTR_NONE. */
HCTR_API hctr_status hctr_embedding_forward(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                            const hctr_array* vectors, int64_t* batch);
HCTR_API hctr_status hctr_embedding_prefetch(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                             int64_t* batch);
/* numbers: [features], receives the row numbers of each feature's keys, i32 [count] on the set's device. removals:
 * receives the number of hctr_embedding_remove() calls so far. Without a group, tiers and policies. */
HCTR_API hctr_status hctr_embedding_row_numbers(hctr_embedding* embedding, int64_t batch, int32_t* const* numbers,
                                                int64_t* removals);
/* Like hctr_embedding_prefetch(), for keys whose row numbers are known: nothing is looked up. */
HCTR_API hctr_status hctr_embedding_prefetch_rows(hctr_embedding* embedding, int64_t samples,
                                                  const hctr_feature_keys* keys, const int32_t* const* numbers,
                                                  int64_t removals, int64_t* batch);
HCTR_API hctr_status hctr_embedding_vectors(hctr_embedding* embedding, int64_t batch, const hctr_array* vectors);
HCTR_API hctr_status hctr_embedding_reserve(hctr_embedding* embedding, int64_t samples,
                                            const int64_t* keys_of_features);
HCTR_API hctr_status hctr_embedding_reserve_lookup(hctr_embedding* embedding, int64_t samples,
                                                   const int64_t* keys_of_features);
/* Bytes currently allocated from the caller's allocator. */
HCTR_API hctr_status hctr_embedding_allocated_bytes(hctr_embedding* embedding, int64_t* bytes);
/* weights: [features], receives the gradient of each feature's weights, f32 [count]; data NULL: not computed. */
HCTR_API hctr_status hctr_embedding_weight_gradients(hctr_embedding* embedding, int64_t batch,
                                                     const hctr_array* gradients, const hctr_array* weights);
HCTR_API hctr_status hctr_embedding_update(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                           const hctr_update* update);
/* keys: [tables], receives the number of keys that this rank looks up in each table. */
HCTR_API hctr_status hctr_embedding_keys_of_batch(hctr_embedding* embedding, int64_t batch, int64_t* keys);
/* to: [tables], receives keys and gradients. rows: [tables], receives the number of rows. */
HCTR_API hctr_status hctr_embedding_row_gradients(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                                  const hctr_row_gradients* to, int64_t* rows);
/* Like hctr_embedding_row_gradients(), without ending the batch: hctr_embedding_update() may follow. */
HCTR_API hctr_status hctr_embedding_read_row_gradients(hctr_embedding* embedding, int64_t batch,
                                                       const hctr_array* gradients, const hctr_row_gradients* to,
                                                       int64_t* rows);
HCTR_API hctr_status hctr_embedding_release(hctr_embedding* embedding, int64_t batch);
HCTR_API hctr_status hctr_embedding_lookup(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                           const hctr_array* vectors);
HCTR_API hctr_status hctr_embedding_updates(hctr_embedding* embedding, int64_t* updates);
HCTR_API hctr_status hctr_embedding_set_updates(hctr_embedding* embedding, int64_t updates);
HCTR_API hctr_status hctr_embedding_rows(hctr_embedding* embedding, const char* table, int64_t* rows);
/* Receives a block of rows in host memory: keys [count], vectors [count, dim], states [state_count], each shaped like a
 * state of hctr::TableRows. A nonzero result ends the export. */
typedef int (*hctr_rows_sink)(void* user, int64_t count, const int64_t* keys, const float* vectors,
                              const float* const* states, int32_t state_count);
/* changed: nonzero exports only rows that may have changed since hctr_embedding_note_exported(). */
HCTR_API hctr_status hctr_embedding_export(hctr_embedding* embedding, const char* table, int states, int changed,
                                           hctr_rows_sink sink, void* user);
HCTR_API hctr_status hctr_embedding_note_exported(hctr_embedding* embedding);
/* keys: i64 [count]; vectors: f32 [count, dim], contiguous; data NULL: initial values. states [state_count]: contiguous
 * f32 arrays. All arrays are in host memory. */
HCTR_API hctr_status hctr_embedding_import(hctr_embedding* embedding, const char* table, const hctr_array* keys,
                                           const hctr_array* vectors, const hctr_array* states, int32_t state_count);
/* Removes the rows of these keys. removed: receives the number of removed rows; may be NULL. */
HCTR_API hctr_status hctr_embedding_remove(hctr_embedding* embedding, const char* table, const int64_t* keys,
                                           int64_t count, int64_t* removed);
/* Writes at most `most` keys whose rows were removed since hctr_embedding_note_exported(). count: receives the number
 * of all such keys. */
HCTR_API hctr_status hctr_embedding_removed_keys(hctr_embedding* embedding, const char* table, int64_t* keys,
                                                 int64_t most, int64_t* count);
/* Passes statistics of a table by name: memory (rows, rows_on_host, rows_on_disk, device_bytes, host_bytes), then the
 * counts of its row policy (rows_evicted, ...). */
typedef void (*hctr_figure)(void* user, const char* name, int64_t value);
HCTR_API hctr_status hctr_embedding_figures(hctr_embedding* embedding, const char* table, hctr_figure figure,
                                            void* user);
HCTR_API hctr_status hctr_embedding_save(hctr_embedding* embedding, const char* folder);
HCTR_API hctr_status hctr_embedding_load(hctr_embedding* embedding, const char* folder);

#ifdef __cplusplus
}
#endif

#endif
