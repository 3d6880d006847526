/* The library for programs in C and in languages that call C. docs/library.md has examples.
 *
 * Calls return HCTR_OK or the kind of an error; hctr_error_message() says what was wrong. Structs begin with their
 * size: set it to sizeof the struct, and all that is 0 has its default. A handle is used by one thread at a time, but
 * for hctr_model_score(), which any number of threads may call. Nothing prints, ends the process or reads the
 * environment.
 */
#ifndef HCTR_HUGE_CTR_H
#define HCTR_HUGE_CTR_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of errors have the exit codes of the program. */
typedef int hctr_status;
enum {
  HCTR_OK = 0,
  HCTR_BUG = 1,
  HCTR_USAGE = 2,
  HCTR_CONFIG = 3,
  HCTR_DATA = 4,
  HCTR_IO = 5,
  HCTR_DEVICE = 6,
  HCTR_COMM = 7,
  HCTR_INTERRUPTED = 130
};

HCTR_API const char* hctr_version(void);
/* What the last failed call of this thread has found; "" if none has failed. Valid until its next call. */
HCTR_API const char* hctr_error_message(void);

typedef int32_t hctr_dtype;
enum { HCTR_F32 = 0, HCTR_I32 = 1, HCTR_U32 = 2, HCTR_I64 = 3, HCTR_U64 = 4 };

/* Memory of the caller. */
typedef struct hctr_array {
  void* data;
  hctr_dtype dtype;
  int32_t dims;           /* at most 4 */
  const int64_t* shape;   /* [dims] */
  const int64_t* strides; /* [dims] in elements; NULL: the last dimension is contiguous, and so on */
  int32_t gpu;            /* -1: memory of the host; else that GPU. 0 is the first GPU, so set it */
} hctr_array;

/* DLPack, as its header declares it: https://github.com/dmlc/dlpack */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* The array of a tensor. It borrows memory and shape: the tensor stays with the caller, and lives as long. */
HCTR_API hctr_status hctr_array_from_dlpack(const struct DLManagedTensor* tensor, hctr_array* array);
HCTR_API hctr_status hctr_array_from_dlpack_versioned(const struct DLManagedTensorVersioned* tensor, hctr_array* array);
/* A tensor of an array, whose deleter calls release(owner), if that is given. */
HCTR_API hctr_status hctr_array_to_dlpack(const hctr_array* array, void (*release)(void* owner), void* owner,
                                          struct DLManagedTensor** tensor);

/* Gets a line for people; level 0: information, 1: a warning. Called by any thread. */
typedef void (*hctr_log)(void* user, int level, const char* line);

/* How a program lets the library read and set its environment, as the C library does: OPENBLAS_CORETYPE for processors
 * that OpenBLAS does not know, HCTR_* of docs/distributed.md, ${NAME} in configs. NULL: it does neither. */
typedef char* (*hctr_getenv)(const char* name);
typedef int (*hctr_setenv)(const char* name, const char* value, int replace);

/* ---- Embeddings: hctr/embedding.h says what each field and call means. ---- */

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

/* ---- Trained models: hctr/model.h says what each field and call means. ---- */

typedef struct hctr_model hctr_model;

enum { HCTR_DENSE = 0, HCTR_KEYS = 1, HCTR_SCORES = 2, HCTR_LABELS = 3 }; /* roles of inputs and outputs */
enum { HCTR_AUTOMATIC = 0, HCTR_CPU = 1, HCTR_CUDA = 2 };

typedef struct hctr_model_options {
  size_t size;
  const char* model;  /* a run folder, a checkpoint, a snapshot_prefix, or a dense model file */
  const char* config; /* NULL: the one that is saved with the model */
  const char* const* changes;
  size_t change_count;
  int32_t device;
  int32_t threads;      /* 0: all usable cores */
  int64_t most_samples; /* 0: 65536 */
  hctr_log log;
  void* log_user;
  hctr_getenv getenv;
  hctr_setenv setenv;
} hctr_model_options;

typedef struct hctr_tensor {
  size_t size;
  int32_t role;
  const char* name; /* valid as long as the model that is loaded */
  int64_t columns;  /* of a sample; of keys: its slots */
} hctr_tensor;

typedef struct hctr_model_input {
  size_t size;
  const char* name;
  hctr_array
      data; /* dense: f32 [samples, columns]. Keys: i32 u32 i64 u64 [count], or [samples, slots] without offsets */
  hctr_array offsets; /* [samples * slots + 1]; data NULL: every slot has one key */
} hctr_model_input;

typedef struct hctr_model_output {
  size_t size;
  const char* name;
  hctr_array scores; /* f32 [samples, columns] */
} hctr_model_output;

HCTR_API hctr_status hctr_model_load(const hctr_model_options* options, hctr_model** model);
HCTR_API hctr_status hctr_model_replace(hctr_model* model, const hctr_model_options* options);
HCTR_API void hctr_model_destroy(hctr_model* model);
HCTR_API hctr_status hctr_model_describe(hctr_model* model, size_t* inputs, size_t* outputs, int64_t* iteration);
/* index: from 0; inputs first, then outputs. */
HCTR_API hctr_status hctr_model_tensor(hctr_model* model, size_t index, hctr_tensor* tensor);
HCTR_API hctr_status hctr_model_score(hctr_model* model, int64_t samples, const hctr_model_input* inputs,
                                      size_t input_count, const hctr_model_output* outputs, size_t output_count);

/* What is scored, of the rows that follow: f32 [rows, columns] of each output; NaN for a bad record that was left out.
 * Not 0 ends the work, with HCTR_INTERRUPTED. */
typedef int (*hctr_scored_rows)(void* user, int64_t rows, const hctr_model_output* outputs, size_t output_count);
/* Scores all samples of a source in the format of the model's config: files, or a table in memory. */
HCTR_API hctr_status hctr_model_predict(hctr_model* model, const char* source, hctr_scored_rows rows, void* user);
/* The inputs that samples of such a source become, in batches; offsets of keys are those of the batch. partial: columns
 * of slots may be missing, which then have no keys. */
typedef int (*hctr_encoded_samples)(void* user, int64_t samples, const hctr_model_input* inputs, size_t input_count);
HCTR_API hctr_status hctr_model_encode(hctr_model* model, const char* source, int32_t partial,
                                       hctr_encoded_samples samples, void* user);
/* "the final model of run 'runs/a', iteration 60", and the device; valid until the next call of this thread. */
HCTR_API hctr_status hctr_model_about(hctr_model* model, const char** name, const char** device);

/* ---- Tables in memory, in the layout of Arrow: https://arrow.apache.org/docs/format/CDataInterface.html ---- */

struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;

/* Columns of numbers, booleans, texts, lists of them and dictionaries. Its name takes the place of a file as a source,
 * in this process, where the Data layer names columns (Csv, Parquet). Nothing is copied. */
typedef struct hctr_frame hctr_frame;
/* Takes possession of schema and batches, also where it fails. */
HCTR_API hctr_status hctr_frame_create(struct ArrowSchema* schema, struct ArrowArray* const* batches, size_t count,
                                       hctr_frame** frame);
HCTR_API hctr_status hctr_frame_from_stream(struct ArrowArrayStream* stream, hctr_frame** frame);
HCTR_API int64_t hctr_frame_rows(const hctr_frame* frame);
/* "memory:/1"; valid as long as the frame. */
HCTR_API const char* hctr_frame_source(const hctr_frame* frame);
/* Whoever reads the table goes on, and releases it at the end. */
HCTR_API void hctr_frame_destroy(hctr_frame* frame);

/* ---- What is done with a saved model: hctr/use_model.h says what each field and call means. ---- */

/* Ends work that runs with it, after what it is at, with HCTR_INTERRUPTED. Any thread may set it; it stays set. */
typedef struct hctr_stop hctr_stop;
HCTR_API hctr_status hctr_stop_create(hctr_stop** stop);
HCTR_API void hctr_stop_set(hctr_stop* stop);
HCTR_API void hctr_stop_destroy(hctr_stop* stop);

typedef struct hctr_use_options {
  size_t size;
  const char* model;
  const char* config; /* NULL: the one that is saved with the model */
  const char* const* changes;
  size_t change_count;
  const char* data; /* NULL: the eval_source of the config */
  int32_t device;
  int32_t threads; /* 0: all usable cores */
  int32_t allow_unmatched;
  hctr_log log;
  void* log_user;
  hctr_getenv getenv;
  hctr_setenv setenv;
  const hctr_stop* stop; /* NULL: nobody stops it */
} hctr_use_options;

typedef struct hctr_use_summary {
  size_t size;
  int64_t iteration;
  int64_t samples;
  int64_t skipped_records;
  double seconds;
} hctr_use_summary;

enum { HCTR_ONNX = 0, HCTR_NPZ = 1, HCTR_SAFETENSORS = 2, HCTR_PARQUET = 3 }; /* formats of exports */

/* A metric, or a file. */
typedef void (*hctr_metric)(void* user, const char* name, double value);
typedef void (*hctr_file)(void* user, const char* path);
/* How the AUC of the first label, and the scores in the mean, change where a feature has the values of other rows. */
typedef void (*hctr_importance)(void* user, const char* feature, double auc, double scores_moved);

/* summary: NULL, or gets it. */
HCTR_API hctr_status hctr_evaluate(const hctr_use_options* options, hctr_metric metric, void* user,
                                   hctr_use_summary* summary);
/* out: a file that ends in .tsv, .csv or .parquet. keep: columns that are passed on. */
HCTR_API hctr_status hctr_predict(const hctr_use_options* options, const char* out, const char* const* keep,
                                  size_t keep_count, hctr_use_summary* summary);
/* out: a folder that is new, or empty. rows: of ONNX, samples that it gets with their scores. */
HCTR_API hctr_status hctr_export(const hctr_use_options* options, int32_t format, const char* out, int64_t rows,
                                 hctr_file file, void* user);
/* Of at most so many rows. auc: gets that of the scores as they are. */
HCTR_API hctr_status hctr_feature_importance(const hctr_use_options* options, int64_t rows, hctr_importance feature,
                                             void* user, double* auc);

/* ---- Training: hctr/trainer.h says what each field and call means. ---- */

typedef struct hctr_trainer hctr_trainer;

typedef struct hctr_trainer_options {
  size_t size;
  const char* config;      /* a file; with config_text its name in messages */
  const char* config_text; /* JSON; NULL: config is read */
  const char* const* changes;
  size_t change_count;
  const char* run_folder; /* NULL: none is written */
  const char* resume;     /* a checkpoint, or "latest"; NULL: training starts anew */
  int32_t device;
  int32_t threads; /* 0: all usable cores */
  hctr_log log;
  void* log_user;
  int32_t allow_unmatched;
  hctr_getenv getenv;
  hctr_setenv setenv;
} hctr_trainer_options;

typedef struct hctr_metric_value {
  const char* name;
  double value;
} hctr_metric_value;

typedef struct hctr_trainer_state {
  size_t size;
  int64_t iteration;
  int64_t samples;
  double loss;
  double mean_loss; /* since the last display; NaN without samples */
  double learning_rate;
  double samples_per_second;
  double seconds;
  int64_t evaluated_at; /* -1: never */
  int64_t passes;
  double epoch;                     /* NaN: not known */
  const hctr_metric_value* metrics; /* of the last evaluation; valid until the next call, or the end of the callback */
  size_t metric_count;
} hctr_trainer_state;

/* What is -1 is as the config says. */
typedef struct hctr_fit_options {
  size_t size;
  int64_t iteration, passes, display, eval_interval, snapshot;
} hctr_fit_options;

/* Files of weights and states; NULL: stay as they are. Tables by name, one file each. */
typedef struct hctr_weight_files {
  size_t size;
  const char* dense;
  const char* dense_states;
  const char* const* table_names;
  const char* const* table_files;
  size_t table_count;
  const char* const* table_state_names;
  const char* const* table_state_files;
  size_t table_state_count;
} hctr_weight_files;

enum { HCTR_REACHED = 0, HCTR_PASS_ENDED = 1, HCTR_METRIC = 2, HCTR_STOPPED = 3 }; /* why a call ended */

/* At a display or behind an evaluation; not 0 stops training. */
typedef int (*hctr_trainer_callback)(void* user, const hctr_trainer_state* state);
HCTR_API hctr_status hctr_trainer_create(const hctr_trainer_options* options, hctr_trainer** trainer);
HCTR_API void hctr_trainer_destroy(hctr_trainer* trainer);
HCTR_API hctr_status hctr_trainer_on_display(hctr_trainer* trainer, hctr_trainer_callback callback, void* user);
HCTR_API hctr_status hctr_trainer_on_evaluation(hctr_trainer* trainer, hctr_trainer_callback callback, void* user);
/* iteration: 0: to the end that the config says. ended: NULL, or gets why. Likewise below. */
HCTR_API hctr_status hctr_trainer_fit(hctr_trainer* trainer, int64_t iteration, int32_t* ended);
HCTR_API hctr_status hctr_trainer_fit_until(hctr_trainer* trainer, const hctr_fit_options* until, int32_t* ended);
/* Any thread: the call that runs ends after its step, with HCTR_STOPPED. Later calls train on. */
HCTR_API void hctr_trainer_stop(hctr_trainer* trainer);
HCTR_API hctr_status hctr_trainer_step(hctr_trainer* trainer, int64_t iterations, int32_t* ended);
HCTR_API hctr_status hctr_trainer_step_samples(hctr_trainer* trainer, int64_t samples, const hctr_model_input* inputs,
                                               size_t input_count, int32_t* ended);
HCTR_API hctr_status hctr_trainer_evaluate(hctr_trainer* trainer, hctr_metric metric, void* user);
HCTR_API hctr_status hctr_trainer_evaluate_samples(hctr_trainer* trainer, int64_t samples,
                                                   const hctr_model_input* inputs, size_t input_count,
                                                   hctr_metric metric, void* user);
/* state: size is set. */
HCTR_API hctr_status hctr_trainer_read_state(hctr_trainer* trainer, hctr_trainer_state* state);
/* Inputs of step_samples, by index from 0; count: NULL, or gets how many. */
HCTR_API hctr_status hctr_trainer_tensor(hctr_trainer* trainer, size_t index, hctr_tensor* tensor, size_t* count);
/* Below 0: that of the schedule. */
HCTR_API hctr_status hctr_trainer_set_learning_rate(hctr_trainer* trainer, double rate);
HCTR_API hctr_status hctr_trainer_set_source(hctr_trainer* trainer, const char* source);
HCTR_API hctr_status hctr_trainer_set_evaluation_source(hctr_trainer* trainer, const char* source);
HCTR_API hctr_status hctr_trainer_freeze(hctr_trainer* trainer, const char* const* names, size_t count);
HCTR_API hctr_status hctr_trainer_unfreeze(hctr_trainer* trainer, const char* const* names, size_t count);
HCTR_API hctr_status hctr_trainer_save(hctr_trainer* trainer, const char* prefix, hctr_file file, void* user);
HCTR_API hctr_status hctr_trainer_load(hctr_trainer* trainer, const hctr_weight_files* files);
HCTR_API hctr_status hctr_trainer_checkpoint(hctr_trainer* trainer, const char* folder, hctr_file file, void* user);
HCTR_API hctr_status hctr_trainer_finish(hctr_trainer* trainer);

#ifdef __cplusplus
}
#endif

#endif
