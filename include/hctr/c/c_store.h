/* Part of huge_ctr.h, tables for inference: hctr/store.h says what each field and call means. */
#ifndef HCTR_C_STORE_H
#define HCTR_C_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any number of threads use a store and its views at a time. */
typedef struct hctr_store hctr_store;
typedef struct hctr_store_view hctr_store_view;

typedef struct hctr_store_options {
  size_t size;
  const char* config;      /* a store.json or a ps.json; with config_text its name in messages */
  const char* config_text; /* JSON; NULL: config is read */
  int32_t loads;           /* 0: models of the config are loaded where the store lacks them, and updated; 1: not */
  hctr_log log;
  void* log_user;
  hctr_getenv getenv;
  hctr_setenv setenv;
} hctr_store_options;

/* The rows of a table: of one of model_file, file, keys_file and vectors_file, or keys and vectors. */
typedef struct hctr_store_source {
  size_t size;
  const char* name;
  int64_t dim;
  const char* model_file;
  const char* file;
  const char* keys_file;
  const char* vectors_file;
  hctr_array keys;    /* [rows], i32 u32 i64 u64, data NULL: not given; read before the call returns */
  hctr_array vectors; /* f32 [rows, dim] */
  float default_value;
  int32_t by_slot;
} hctr_store_source;

typedef struct hctr_store_model {
  size_t size;
  const char* name;
  const char* version; /* NULL: "1" */
  const char* model;   /* a run folder, a checkpoint or a snapshot_prefix, whose tables are served; NULL: tables */
  const hctr_store_source* tables; /* one after another, each of tables[0].size bytes */
  size_t table_count;
  int32_t miss_is_error;
} hctr_store_model;

/* Rows of a table that an update changes. */
typedef struct hctr_store_update {
  size_t size;
  const char* table;
  int32_t slot;
  hctr_array keys;    /* [rows]; data NULL: none are changed */
  hctr_array vectors; /* f32 [rows, dim] */
  hctr_array removed; /* [keys]; data NULL: none are */
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

/* A level of a table; keys: those that it was asked for, and that it had. */
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
  const char* name; /* valid as long as the view */
  int64_t dim;
  int32_t by_slot;
  float default_value;
} hctr_store_table;

HCTR_API hctr_status hctr_store_open(const hctr_store_options* options, hctr_store** store);
/* Views and models that have its tables go on. */
HCTR_API void hctr_store_destroy(hctr_store* store);

HCTR_API hctr_status hctr_store_load(hctr_store* store, const hctr_store_model* model);
HCTR_API hctr_status hctr_store_activate(hctr_store* store, const char* model, const char* version);
HCTR_API hctr_status hctr_store_unload(hctr_store* store, const char* model, const char* version);
/* Deltas at a prefix that are newer than the active version; applied: NULL, or gets how many were. Likewise below. */
HCTR_API hctr_status hctr_store_update_from(hctr_store* store, const char* model, const char* prefix, int64_t* applied);
HCTR_API hctr_status hctr_store_apply_delta(hctr_store* store, const char* model, const char* folder, int64_t* applied);
HCTR_API hctr_status hctr_store_apply(hctr_store* store, const char* model, int64_t iteration,
                                      const hctr_store_update* updates, size_t count, int64_t* applied);

/* Texts are valid during the callback. */
typedef void (*hctr_store_models_sink)(void* user, const hctr_store_model_state* state);
HCTR_API hctr_status hctr_store_models(hctr_store* store, hctr_store_models_sink sink, void* user);
typedef void (*hctr_store_levels_sink)(void* user, const hctr_store_level_state* state);
HCTR_API hctr_status hctr_store_levels(hctr_store* store, hctr_store_levels_sink sink, void* user);
HCTR_API hctr_status hctr_store_verify(hctr_store* store, int64_t* rows);
HCTR_API hctr_status hctr_store_compact(hctr_store* store, int64_t* bytes);

/* The active version of a model, as long as the view lives. */
HCTR_API hctr_status hctr_store_view_create(hctr_store* store, const char* model, hctr_store_view** view);
HCTR_API void hctr_store_view_destroy(hctr_store_view* view);
HCTR_API hctr_status hctr_store_view_version(const hctr_store_view* view, const char** version, size_t* tables);
HCTR_API hctr_status hctr_store_view_table(const hctr_store_view* view, size_t index, hctr_store_table* table);

/* keys: [count], i32 u32 i64 u64; rows: f32 [count, dim], any row stride; found: NULL, or [count]; missing: NULL, or
 * gets how many different keys have no row. */
HCTR_API hctr_status hctr_store_get(const hctr_store_view* view, size_t table, int32_t slot, const hctr_array* keys,
                                    const hctr_array* rows, uint8_t* found, int64_t* missing);
/* offsets: [bags + 1], i32 i64; pooling: HCTR_SUM, HCTR_MEAN, HCTR_SQRTN; vectors: f32 [bags, dim]. */
HCTR_API hctr_status hctr_store_get_pooled(const hctr_store_view* view, size_t table, int32_t slot,
                                           const hctr_array* keys, const hctr_array* offsets, int32_t pooling,
                                           const hctr_array* vectors, int64_t* missing);
/* One answer of several tables, all of one state. tables, slots, keys, rows: [count]; slots: NULL: 0. */
HCTR_API hctr_status hctr_store_get_tables(const hctr_store_view* view, size_t count, const size_t* tables,
                                           const int32_t* slots, const hctr_array* keys, const hctr_array* rows,
                                           int64_t* missing);

#ifdef __cplusplus
}
#endif

#endif
