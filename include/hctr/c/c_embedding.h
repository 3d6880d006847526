/* Part of huge_ctr.h, embeddings: hctr/embedding.h says what each field and call means. */
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
enum { HCTR_LOCAL = 0, HCTR_GLOBAL = 1, HCTR_LAZY_GLOBAL = 2 };                   /* rows that an update changes */
enum { HCTR_FORMULA_CONFIG = 0, HCTR_FORMULA_TORCH = 1, HCTR_FORMULA_KERAS = 2 }; /* formulas of optimizers */
enum { HCTR_UNIFORM = 0, HCTR_NORMAL = 1, HCTR_CONSTANT = 2, HCTR_BY_ROWS = 3 };  /* initial values */
enum { HCTR_ROWS_F32 = 0, HCTR_ROWS_F16 = 1, HCTR_ROWS_BF16 = 2 };                /* formats of rows */
enum {
  HCTR_PLACE_AUTOMATIC = 0,
  HCTR_PLACE_WHOLE = 1,
  HCTR_PLACE_SPREAD = 2,
  HCTR_PLACE_REPLICATED = 3
}; /* rows on ranks */
enum { HCTR_FULL_ERROR = 0, HCTR_EVICT_LRU = 1, HCTR_EVICT_LFU = 2, HCTR_IGNORE = 3 }; /* when a table is full */

/* A rank of a group that shares the tables of embeddings: hctr/ranks.h. Calls of embeddings of a group that wait for
 * the other ranks are those that hctr/embedding.h calls collective. */
typedef struct hctr_rank hctr_rank;
/* The value of a variable of the environment, valid until the next call; NULL: it is not set. Called by any thread. */
typedef const char* (*hctr_environment)(void* user, const char* name);

typedef struct hctr_join {
  size_t size;
  int32_t ranks;       /* of this process; 0: 1 */
  const char* address; /* of process 0; NULL: as the launcher says in the environment, or this process is alone */
  int32_t port;
  int32_t process;
  int32_t processes;       /* 0: 1 */
  const char* secret;      /* NULL: none */
  int32_t call_seconds;    /* 0: 60; below 0: no limit */
  int32_t join_seconds;    /* 0: 300 */
  int32_t silence_seconds; /* 0: 20 */
  hctr_environment environment;
  void* environment_user;
  hctr_log log;
  void* log_user;
} hctr_join;

/* ranks: [ranks of this process]. Each handle is for one thread at a time. Embeddings keep what they need of a rank:
 * destroy its handle once they are made, so that its end is noticed by the others. */
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
/* The defaults of a rule, of a config, torch.optim or tf.keras.optimizers. */
HCTR_API hctr_status hctr_optimizer_defaults(int32_t rule, int32_t formula, hctr_optimizer* optimizer);

typedef struct hctr_table {
  size_t size;
  const char* name;
  int64_t dim;
  int64_t rows;
  int32_t format;
  const hctr_optimizer* optimizer; /* NULL: Adam, as hctr_optimizer_defaults() gives it */
  int32_t initial;
  float initial_value; /* 0 with HCTR_UNIFORM: 0.05 */
  int64_t most_rows;
  int32_t when_full;
  int64_t min_count;        /* 0: 1 */
  double admit_probability; /* 0: 1 */
  int64_t expire_after;
  int32_t marks_changes;
  int32_t placement; /* of its rows on several ranks */
  int32_t whole_on;  /* of a whole table: 1 + the rank that has it; 0: it is chosen */
} hctr_table;

typedef struct hctr_feature {
  size_t size;
  const char* name;
  const char* table;
  int32_t pooling;
  int32_t weighted;
} hctr_feature;

/* Memory of the device, aligned to 256 bytes, that work on the stream may use; NULL: there is no more. */
typedef void* (*hctr_allocate)(size_t bytes, void* stream, void* user);
typedef void (*hctr_free)(void* memory, size_t bytes, void* stream, void* user);

typedef struct hctr_embedding_options {
  size_t size;
  const hctr_table* tables; /* one after another, each of tables[0].size bytes; likewise features */
  size_t table_count;
  const hctr_feature* features;
  size_t feature_count;
  int32_t gpu;     /* -1: the CPU. 0 is the first GPU, so set it */
  void* stream;    /* cudaStream_t; NULL: the default stream */
  int32_t threads; /* 0: 1 */
  uint64_t seed;
  int32_t batches;      /* 0: 2 */
  int64_t most_keys;    /* 0: 2^24 */
  int64_t device_bytes; /* 0: what is free */
  int64_t host_bytes;
  const char* disk; /* NULL: none */
  int64_t disk_bytes;
  const hctr_rank* rank;  /* NULL: the tables belong to one set */
  hctr_allocate allocate; /* NULL: the driver gives memory */
  hctr_free free;
  void* allocator_user;
} hctr_embedding_options;

/* The keys of one feature in a batch. */
typedef struct hctr_feature_keys {
  size_t size;
  hctr_array keys;    /* [count], i32 u32 i64 u64 */
  hctr_array offsets; /* [samples + 1], i32 i64; data NULL: one key each */
  hctr_array weights; /* [count], f32; data NULL: all are 1 */
} hctr_feature_keys;

typedef struct hctr_update {
  size_t size;
  float learning_rate;
  const float* rate_on_device;
  float loss_scale; /* 0: 1 */
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
/* Arrays of keys and vectors: one for each feature. Vectors: f32 [samples, dim], or [count, dim] with HCTR_NONE. */
HCTR_API hctr_status hctr_embedding_forward(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                            const hctr_array* vectors, int64_t* batch);
HCTR_API hctr_status hctr_embedding_prefetch(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                             int64_t* batch);
HCTR_API hctr_status hctr_embedding_vectors(hctr_embedding* embedding, int64_t batch, const hctr_array* vectors);
HCTR_API hctr_status hctr_embedding_reserve(hctr_embedding* embedding, int64_t samples,
                                            const int64_t* keys_of_features);
HCTR_API hctr_status hctr_embedding_reserve_lookup(hctr_embedding* embedding, int64_t samples,
                                                   const int64_t* keys_of_features);
/* Bytes of the caller's allocator that the embeddings have now. */
HCTR_API hctr_status hctr_embedding_allocated_bytes(hctr_embedding* embedding, int64_t* bytes);
/* weights: of each feature the gradient of its weights, f32 [count]; data NULL: not wanted. */
HCTR_API hctr_status hctr_embedding_weight_gradients(hctr_embedding* embedding, int64_t batch,
                                                     const hctr_array* gradients, const hctr_array* weights);
HCTR_API hctr_status hctr_embedding_update(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                           const hctr_update* update);
/* keys: [tables], how many of each this rank looks up. */
HCTR_API hctr_status hctr_embedding_keys_of_batch(hctr_embedding* embedding, int64_t batch, int64_t* keys);
/* to: one for each table. rows: [tables]. */
HCTR_API hctr_status hctr_embedding_row_gradients(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                                  const hctr_row_gradients* to, int64_t* rows);
/* The same, and the batch goes on: hctr_embedding_update() may follow. */
HCTR_API hctr_status hctr_embedding_read_row_gradients(hctr_embedding* embedding, int64_t batch,
                                                       const hctr_array* gradients, const hctr_row_gradients* to,
                                                       int64_t* rows);
HCTR_API hctr_status hctr_embedding_release(hctr_embedding* embedding, int64_t batch);
HCTR_API hctr_status hctr_embedding_lookup(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                           const hctr_array* vectors);
HCTR_API hctr_status hctr_embedding_updates(hctr_embedding* embedding, int64_t* updates);
HCTR_API hctr_status hctr_embedding_set_updates(hctr_embedding* embedding, int64_t updates);
HCTR_API hctr_status hctr_embedding_rows(hctr_embedding* embedding, const char* table, int64_t* rows);
/* A block of rows in memory of the host: keys [count], vectors [count, dim], states [state_count] likewise. Not 0 ends
 * the export. */
typedef int (*hctr_rows_sink)(void* user, int64_t count, const int64_t* keys, const float* vectors,
                              const float* const* states, int32_t state_count);
/* changed: those alone that may have changed since hctr_embedding_note_exported(). */
HCTR_API hctr_status hctr_embedding_export(hctr_embedding* embedding, const char* table, int states, int changed,
                                           hctr_rows_sink sink, void* user);
HCTR_API hctr_status hctr_embedding_note_exported(hctr_embedding* embedding);
/* keys: i64 [count]; vectors: f32 [count, dim], contiguous, data NULL: initial values; states likewise. All on the
 * host. */
HCTR_API hctr_status hctr_embedding_import(hctr_embedding* embedding, const char* table, const hctr_array* keys,
                                           const hctr_array* vectors, const hctr_array* states, int32_t state_count);
/* Removes the rows of these keys; removed: NULL, or gets how many that were. */
HCTR_API hctr_status hctr_embedding_remove(hctr_embedding* embedding, const char* table, const int64_t* keys,
                                           int64_t count, int64_t* removed);
/* The keys whose rows have gone since hctr_embedding_note_exported(), at most `most`; count gets how many there are. */
HCTR_API hctr_status hctr_embedding_removed_keys(hctr_embedding* embedding, const char* table, int64_t* keys,
                                                 int64_t most, int64_t* count);
/* Figures of a table by name: memory (rows, rows_on_host, rows_on_disk, device_bytes, host_bytes), then the counts of
 * its policy (rows_evicted, ...). */
typedef void (*hctr_figure)(void* user, const char* name, int64_t value);
HCTR_API hctr_status hctr_embedding_figures(hctr_embedding* embedding, const char* table, hctr_figure figure,
                                            void* user);
HCTR_API hctr_status hctr_embedding_save(hctr_embedding* embedding, const char* folder);
HCTR_API hctr_status hctr_embedding_load(hctr_embedding* embedding, const char* folder);

#ifdef __cplusplus
}
#endif

#endif
