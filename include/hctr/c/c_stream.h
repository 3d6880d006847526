/* Part of huge_ctr.h: deltas of tables through Kafka. hctr/delta_stream.h and hctr/store_stream.h document the fields
 * and calls of the same names. */
#ifndef HCTR_C_STREAM_H
#define HCTR_C_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"
#include "hctr/c/c_store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hctr_stream_options {
  size_t size;
  const char* brokers; /* comma-separated "host:port" addresses */
  const char* topic;
  int64_t message_bytes;         /* producer: maximum size of a message; 0 selects 256 KiB */
  int64_t queue_bytes;           /* maximum size of the client's queue of messages; 0 selects 32 MiB */
  int64_t held_bytes;            /* source: size limit of buffered deltas that cannot be applied yet; 0 selects 1 GiB */
  const char* group;             /* source: consumer group to which offsets are committed; NULL: none */
  const char* const* librdkafka; /* "name=value": further settings of the client */
  size_t librdkafka_count;
} hctr_stream_options;

typedef struct hctr_delta_table {
  size_t size;
  const char* name;
  int64_t dim;
  int32_t by_slot;
  int64_t rows; /* rows of the whole table after the delta; a negative number: unknown */
} hctr_delta_table;

typedef struct hctr_delta_about {
  size_t size;
  const char* run; /* NULL: "" */
  int64_t iteration;
  int64_t base;                   /* the iteration that the delta builds on; -1: the delta is a whole model */
  double written;                 /* time of publication, seconds since 1970; 0 in a producer: now */
  const hctr_delta_table* tables; /* contiguous, each of tables[0].size bytes */
  size_t table_count;
} hctr_delta_about;

/* Not thread-safe, except for hctr_delta_producer_stop(). */
typedef struct hctr_delta_producer hctr_delta_producer;

HCTR_API hctr_status hctr_delta_producer_create(const hctr_stream_options* options, hctr_delta_producer** producer);
HCTR_API void hctr_delta_producer_destroy(hctr_delta_producer* producer);
/* Sets the maximum time that each of the calls below waits for a broker. Default: 30 s. */
HCTR_API hctr_status hctr_delta_producer_set_wait(hctr_delta_producer* producer, double seconds);
/* Makes a waiting call and later calls abandon their delta with HCTR_IO. Any thread. */
HCTR_API void hctr_delta_producer_stop(hctr_delta_producer* producer);
HCTR_API hctr_status hctr_delta_producer_begin(hctr_delta_producer* producer, const hctr_delta_about* about);
/* keys: [rows], i32 u32 i64 u64; vectors: f32 [rows, dim]; slots: i32 [rows] if by_slot, else NULL. */
HCTR_API hctr_status hctr_delta_producer_rows(hctr_delta_producer* producer, size_t table, const hctr_array* keys,
                                              const hctr_array* vectors, const int32_t* slots);
HCTR_API hctr_status hctr_delta_producer_removed(hctr_delta_producer* producer, size_t table, const hctr_array* keys,
                                                 const int32_t* slots);
HCTR_API hctr_status hctr_delta_producer_file(hctr_delta_producer* producer, const char* name, const void* bytes,
                                              size_t count);
/* Returns when the broker has acknowledged every message of the delta. */
HCTR_API hctr_status hctr_delta_producer_end(hctr_delta_producer* producer);

typedef struct hctr_stream_statistics {
  size_t size;
  int64_t deltas, messages, bytes;
  int64_t doubled, damaged, missing; /* counts of messages */
  int64_t given_up, held;            /* counts of deltas */
  int64_t behind;                    /* unread messages; -1: unknown */
} hctr_stream_statistics;

/* A source and its deltas are used by one thread at a time. */
typedef struct hctr_delta_source hctr_delta_source;
typedef struct hctr_delta hctr_delta;

/* position: a result of hctr_delta_source_position(); NULL: the topic's first message. run: deltas of other runs are
 * skipped; NULL: accepts every run. iteration: the iteration of the caller's tables; -1: unknown. */
HCTR_API hctr_status hctr_delta_source_create(const hctr_stream_options* options, const char* position, const char* run,
                                              int64_t iteration, hctr_delta_source** source);
HCTR_API void hctr_delta_source_destroy(hctr_delta_source* source);
/* delta: receives the next delta, which the caller must destroy; NULL: no delta arrived within `seconds`. The same
 * delta is returned again until hctr_delta_source_taken(). */
HCTR_API hctr_status hctr_delta_source_next(hctr_delta_source* source, double seconds, hctr_delta** delta);
HCTR_API hctr_status hctr_delta_source_taken(hctr_delta_source* source);
/* position: valid until the next call with this source. Store it in the same commit as the delta's rows. */
HCTR_API hctr_status hctr_delta_source_position(hctr_delta_source* source, const char** position);
HCTR_API hctr_status hctr_delta_source_stored(hctr_delta_source* source);
HCTR_API hctr_status hctr_delta_source_skip_to(hctr_delta_source* source, int64_t iteration);
/* caught_up: 1 if all messages that the topic had at the first call have been read; else 0. */
HCTR_API hctr_status hctr_delta_source_caught_up(hctr_delta_source* source, double seconds, int32_t* caught_up);
/* trouble: receives the last invalid message or, if there was none, the last error of the client ("": none); valid
 * until the next call with this source; may be NULL. */
HCTR_API hctr_status hctr_delta_source_statistics(hctr_delta_source* source, hctr_stream_statistics* statistics,
                                                  const char** trouble);

/* The rows of one table. Pointers are valid as long as the delta; slots are NULL unless the table is by_slot. */
typedef struct hctr_delta_rows {
  size_t size;
  const int64_t* keys; /* [count] */
  const int32_t* slots;
  const float* vectors; /* [count, dim] */
  int64_t count;
  const int64_t* removed; /* [removed_count] */
  const int32_t* removed_slots;
  int64_t removed_count;
} hctr_delta_rows;

HCTR_API void hctr_delta_destroy(hctr_delta* delta);
/* about: receives all fields except `tables`; hctr_delta_read_table() reads the tables. files: receives the number of
 * files; may be NULL. */
HCTR_API hctr_status hctr_delta_read_about(const hctr_delta* delta, hctr_delta_about* about, size_t* files);
HCTR_API hctr_status hctr_delta_read_table(const hctr_delta* delta, size_t index, hctr_delta_table* table,
                                           hctr_delta_rows* rows);
HCTR_API hctr_status hctr_delta_read_file(const hctr_delta* delta, size_t index, const char** name, const void** bytes,
                                          size_t* count);

/* Applies the updates of a topic to a store. The store must outlive the stream. Not thread-safe, except for
 * hctr_store_stream_statistics(). */
typedef struct hctr_store_stream hctr_store_stream;

typedef struct hctr_store_stream_options {
  size_t size;
  hctr_stream_options stream;
  const char* updates; /* a snapshot_prefix: replaces deltas that the topic lacks; NULL: no files */
  int32_t hps;         /* 1: reads messages of HugeCTR's parameter server */
  int32_t key_bytes;   /* with hps: bytes per key, 8 or 4; 0 selects 8 */
} hctr_store_stream_options;

typedef struct hctr_store_stream_state {
  size_t size;
  hctr_stream_statistics stream;
  int64_t applied, rows;
  double age_seconds; /* seconds since the newest applied delta was published; -1: none applied */
} hctr_store_stream_state;

HCTR_API hctr_status hctr_store_stream_create(hctr_store* store, const char* model,
                                              const hctr_store_stream_options* options, hctr_store_stream** stream);
HCTR_API void hctr_store_stream_destroy(hctr_store_stream* stream);
/* Applies the updates that arrive within `seconds`. applied: receives the number of applied deltas; may be NULL, also
 * in the call below. */
HCTR_API hctr_status hctr_store_stream_apply(hctr_store_stream* stream, double seconds, int64_t* applied);
/* Applies all deltas that are in the topic now. Fails with HCTR_IO if a broker does not answer within `seconds`. */
HCTR_API hctr_status hctr_store_stream_catch_up(hctr_store_stream* stream, double seconds, int64_t* applied);
/* Starts a thread that applies deltas until hctr_store_stream_stop() or an error. */
HCTR_API hctr_status hctr_store_stream_start(hctr_store_stream* stream);
HCTR_API hctr_status hctr_store_stream_stop(hctr_store_stream* stream);
/* error: receives the error that ended the thread; trouble: as in hctr_delta_source_statistics(). "": none. Both are
 * valid until the next call of hctr_store_stream_statistics() with this stream, and may be NULL. */
HCTR_API hctr_status hctr_store_stream_statistics(hctr_store_stream* stream, hctr_store_stream_state* state,
                                                  const char** error, const char** trouble);

#ifdef __cplusplus
}
#endif

#endif
