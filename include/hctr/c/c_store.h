/* Part of huge_ctr.h: embedding stores. hctr/store.h documents the fields and calls of the same names. */
#ifndef HCTR_C_STORE_H
#define HCTR_C_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stores and views are thread-safe. */
typedef struct hctr_store hctr_store;
typedef struct hctr_store_view hctr_store_view;

typedef struct hctr_store_options {
  size_t size;
  const char* config;      /* a store.json or a ps.json; with config_text: only its name in messages */
  const char* config_text; /* JSON; NULL: the file `config` is read */
  int32_t loads;           /* 0: loads the config's models that the store lacks, and applies updates; 1: does neither */
  hctr_log log;
  void* log_user;
  hctr_getenv getenv;
  hctr_setenv setenv;
} hctr_store_options;

/* The rows of a table. Set exactly one source: model_file, file, keys_file with vectors_file, or keys with vectors. */
typedef struct hctr_store_source {
  size_t size;
  const char* name;
  int64_t dim;
  const char* model_file;
  const char* file;
  const char* keys_file;
  const char* vectors_file;
  hctr_array keys;    /* [rows], i32 u32 i64 u64, read before the call returns; data NULL: not set */
  hctr_array vectors; /* f32 [rows, dim] */
  float default_value;
  int32_t by_slot;
} hctr_store_source;

typedef struct hctr_store_model {
  size_t size;
  const char* name;
  const char* version; /* NULL: "1" */
  const char* model;   /* loads the tables of this run folder, checkpoint or snapshot_prefix; NULL: loads `tables` */
  const hctr_store_source* tables; /* contiguous, each tables[0].size bytes */
  size_t table_count;
  int32_t miss_is_error;
} hctr_store_model;

/* An update of one table: changed rows and removed keys. */
typedef struct hctr_store_update {
  size_t size;
  const char* table;
  int32_t slot;
  hctr_array keys;    /* [rows]; data NULL: no changed rows */
  hctr_array vectors; /* f32 [rows, dim] */
  hctr_array removed; /* [keys]; data NULL: no removed keys */
} hctr_store_update;

typedef struct hctr_store_model_state {
  size_t size;
  const char* model;
  const char* version;
  int32_t active;
  int64_t iteration;
  int64_t updates, updated_rows, removed_rows;
  double age_seconds;
  int64_t waiting;
} hctr_store_model_state;

/* Statistics of one level of a table. asked: keys looked up in the level; found: keys found in the level. */
typedef struct hctr_store_level_state {
  size_t size;
  const char* model;
  const char* version;
  const char* table;
  const char* level;
  int64_t rows, bytes, asked, found;
} hctr_store_level_state;

typedef struct hctr_store_table {
  size_t size;
  const char* name; /* valid until the view is destroyed */
  int64_t dim;
  int32_t by_slot;
  float default_value;
} hctr_store_table;

HCTR_API hctr_status hctr_store_open(const hctr_store_options* options, hctr_store** store);
/* Existing views, and models that use a view, stay valid. */
HCTR_API void hctr_store_destroy(hctr_store* store);

HCTR_API hctr_status hctr_store_load(hctr_store* store, const hctr_store_model* model);
HCTR_API hctr_status hctr_store_activate(hctr_store* store, const char* model, const char* version);
HCTR_API hctr_status hctr_store_unload(hctr_store* store, const char* model, const char* version);
/* Applies deltas at a prefix that are newer than the active version. applied: receives the number of applied deltas;
 * may be NULL, also in the two calls below. */
HCTR_API hctr_status hctr_store_update_from(hctr_store* store, const char* model, const char* prefix, int64_t* applied);
HCTR_API hctr_status hctr_store_apply_delta(hctr_store* store, const char* model, const char* folder, int64_t* applied);
HCTR_API hctr_status hctr_store_apply(hctr_store* store, const char* model, int64_t iteration,
                                      const hctr_store_update* updates, size_t count, int64_t* applied);

/* For a store that another process updates (shared memory, or RocksDB with "open": "follow"): adopts the commits of
 * that process. Existing views of shared memory change too; with RocksDB, open a new view after a call that sets
 * `changed`. If the process that updates shared memory has ended, this process takes over.
 * changed: receives whether there were new commits, 0 or 1; may be NULL. Other stores have no new commits. */
HCTR_API hctr_status hctr_store_refresh(hctr_store* store, int32_t* changed);
/* Whether this process may load and update. 0: another process does so, or the store is open read-only. */
HCTR_API hctr_status hctr_store_writable(hctr_store* store, int32_t* writable);

/* Texts are valid during the callback. */
typedef void (*hctr_store_models_sink)(void* user, const hctr_store_model_state* state);
HCTR_API hctr_status hctr_store_models(hctr_store* store, hctr_store_models_sink sink, void* user);
typedef void (*hctr_store_levels_sink)(void* user, const hctr_store_level_state* state);
HCTR_API hctr_status hctr_store_levels(hctr_store* store, hctr_store_levels_sink sink, void* user);
HCTR_API hctr_status hctr_store_verify(hctr_store* store, int64_t* rows);
HCTR_API hctr_status hctr_store_compact(hctr_store* store, int64_t* bytes);

/* Creates a view of the active version of a model. The view keeps this version alive. */
HCTR_API hctr_status hctr_store_view_create(hctr_store* store, const char* model, hctr_store_view** view);
HCTR_API void hctr_store_view_destroy(hctr_store_view* view);
HCTR_API hctr_status hctr_store_view_version(const hctr_store_view* view, const char** version, size_t* tables);
HCTR_API hctr_status hctr_store_view_table(const hctr_store_view* view, size_t index, hctr_store_table* table);

/* keys: [count], i32 u32 i64 u64; rows: f32 [count, dim], any row stride; found: [count], may be NULL; missing:
 * receives the number of distinct keys without a row, may be NULL. */
HCTR_API hctr_status hctr_store_get(const hctr_store_view* view, size_t table, int32_t slot, const hctr_array* keys,
                                    const hctr_array* rows, uint8_t* found, int64_t* missing);
/* offsets: [bags + 1], i32 i64; pooling: HCTR_SUM, HCTR_MEAN, HCTR_SQRTN; vectors: f32 [bags, dim]. */
HCTR_API hctr_status hctr_store_get_pooled(const hctr_store_view* view, size_t table, int32_t slot,
                                           const hctr_array* keys, const hctr_array* offsets, int32_t pooling,
                                           const hctr_array* vectors, int64_t* missing);
/* Looks up rows in several tables, in one state of the version. tables, slots, keys, rows: [count]; slots NULL: all 0.
 */
HCTR_API hctr_status hctr_store_get_tables(const hctr_store_view* view, size_t count, const size_t* tables,
                                           const int32_t* slots, const hctr_array* keys, const hctr_array* rows,
                                           int64_t* missing);

#ifdef __cplusplus
}
#endif

#endif
