/* Part of huge_ctr.h: trained models. hctr/model.h documents the fields and calls of the same names. */
#ifndef HCTR_C_MODEL_H
#define HCTR_C_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hctr_model hctr_model;

enum { HCTR_DENSE = 0, HCTR_KEYS = 1, HCTR_SCORES = 2, HCTR_LABELS = 3 }; /* roles of inputs and outputs */
enum { HCTR_AUTOMATIC = 0, HCTR_CPU = 1, HCTR_CUDA = 2 };

typedef struct hctr_model_options {
  size_t size;
  const char* model;  /* a run folder, a checkpoint, a snapshot_prefix, or a dense model file */
  const char* config; /* NULL: the config saved with the model */
  const char* const* changes;
  size_t change_count;
  int32_t device;
  int32_t threads;      /* 0: all usable cores */
  int64_t most_samples; /* 0 selects 65536 */
  hctr_log log;
  void* log_user;
  hctr_getenv getenv;
  hctr_setenv setenv;
  const struct hctr_store_view* tables; /* NULL: the model loads its own tables */
} hctr_model_options;

typedef struct hctr_tensor {
  size_t size;
  int32_t role;
  const char* name; /* valid until the model is replaced or destroyed */
  int64_t columns;  /* columns of a sample; keys: slots of a sample */
} hctr_tensor;

typedef struct hctr_model_input {
  size_t size;
  const char* name;
  hctr_array
      data; /* dense: f32 [samples, columns]. Keys: i32 u32 i64 u64 [count], or [samples, slots] without offsets */
  hctr_array offsets; /* [samples * slots + 1]; data NULL: every slot has one key */
  void* stream;       /* data on a GPU: the cudaStream_t whose queued work produces the data; NULL: the default */
} hctr_model_input;

typedef struct hctr_model_output {
  size_t size;
  const char* name;
  hctr_array scores; /* f32 [samples, columns] */
  void* stream;      /* scores on a GPU: written after the work queued on this cudaStream_t; NULL: the default */
} hctr_model_output;

HCTR_API hctr_status hctr_model_load(const hctr_model_options* options, hctr_model** model);
HCTR_API hctr_status hctr_model_replace(hctr_model* model, const hctr_model_options* options);
HCTR_API void hctr_model_destroy(hctr_model* model);
HCTR_API hctr_status hctr_model_describe(hctr_model* model, size_t* inputs, size_t* outputs, int64_t* iteration);
/* index: counts inputs from 0, then outputs. */
HCTR_API hctr_status hctr_model_tensor(hctr_model* model, size_t index, hctr_tensor* tensor);
HCTR_API hctr_status hctr_model_score(hctr_model* model, int64_t samples, const hctr_model_input* inputs,
                                      size_t input_count, const hctr_model_output* outputs, size_t output_count);

/* Receives the scores of consecutive rows: f32 [rows, columns] for each output; NaN for a skipped bad record. A nonzero
 * result ends the call with HCTR_INTERRUPTED. */
typedef int (*hctr_scored_rows)(void* user, int64_t rows, const hctr_model_output* outputs, size_t output_count);
/* Scores all samples of a source (files, or a hctr_frame) in the format of the model's config. */
HCTR_API hctr_status hctr_model_predict(hctr_model* model, const char* source, hctr_scored_rows rows, void* user);
/* Converts the samples of a source to inputs for hctr_model_score(), in batches. Offsets count keys within the batch.
 * partial: slot columns may be missing; the bags of these slots are empty. */
typedef int (*hctr_encoded_samples)(void* user, int64_t samples, const hctr_model_input* inputs, size_t input_count);
HCTR_API hctr_status hctr_model_encode(hctr_model* model, const char* source, int32_t partial,
                                       hctr_encoded_samples samples, void* user);
/* Returns a name such as "the final model of run 'runs/a', iteration 60", and the device. Valid until the next call of
 * this thread. */
HCTR_API hctr_status hctr_model_about(hctr_model* model, const char** name, const char** device);

#ifdef __cplusplus
}
#endif

#endif
