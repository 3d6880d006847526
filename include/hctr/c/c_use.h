/* Part of huge_ctr.h: evaluation, prediction and export of saved models. hctr/use_model.h documents the fields and
 * calls of the same names. */
#ifndef HCTR_C_USE_H
#define HCTR_C_USE_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"
#include "hctr/c/c_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stop flag. Calls that were given this flag end after their current step with HCTR_INTERRUPTED. Any thread may set
 * the flag, and it cannot be cleared. */
typedef struct hctr_stop hctr_stop;
HCTR_API hctr_status hctr_stop_create(hctr_stop** stop);
HCTR_API void hctr_stop_set(hctr_stop* stop);
HCTR_API void hctr_stop_destroy(hctr_stop* stop);

typedef struct hctr_use_options {
  size_t size;
  const char* model;
  const char* config; /* NULL: the config saved with the model */
  const char* const* changes;
  size_t change_count;
  const char* data; /* NULL: the config's eval_source */
  int32_t device;
  int32_t threads; /* 0: all usable cores */
  int32_t allow_unmatched;
  hctr_log log;
  void* log_user;
  hctr_getenv getenv;
  hctr_setenv setenv;
  const hctr_stop* stop; /* NULL: the call cannot be stopped */
} hctr_use_options;

typedef struct hctr_use_summary {
  size_t size;
  int64_t iteration;
  int64_t samples;
  int64_t skipped_records;
  double seconds;
} hctr_use_summary;

enum { HCTR_ONNX = 0, HCTR_NPZ = 1, HCTR_SAFETENSORS = 2, HCTR_PARQUET = 3 }; /* formats of exports */

/* Receives a metric's value, or the path of a written file. */
typedef void (*hctr_metric)(void* user, const char* name, double value);
typedef void (*hctr_file)(void* user, const char* path);
/* Receives the permutation importance of a feature: the AUC of the first label, and the mean absolute change of the
 * scores, if the feature's values are shuffled between rows. */
typedef void (*hctr_importance)(void* user, const char* feature, double auc, double scores_moved);

/* summary: receives the result; may be NULL. */
HCTR_API hctr_status hctr_evaluate(const hctr_use_options* options, hctr_metric metric, void* user,
                                   hctr_use_summary* summary);
/* Evaluates a loaded model on one rank. source: labeled samples; NULL: the config's eval_source. stop: may be NULL. A
 * slot or label whose values match nothing causes a warning. */
HCTR_API hctr_status hctr_model_evaluate(hctr_model* model, const char* source, const hctr_stop* stop,
                                         hctr_metric metric, void* user, hctr_use_summary* summary);
/* out: a file that ends in .tsv, .csv or .parquet. keep: columns of the source to copy to the output. */
HCTR_API hctr_status hctr_predict(const hctr_use_options* options, const char* out, const char* const* keep,
                                  size_t keep_count, hctr_use_summary* summary);
/* out: a new or empty folder. rows: for HCTR_ONNX, the number of samples to write to rows.npz with their scores. */
HCTR_API hctr_status hctr_export(const hctr_use_options* options, int32_t format, const char* out, int64_t rows,
                                 hctr_file file, void* user);
/* Scores at most `rows` evaluation samples. auc: receives the AUC without permutation. */
HCTR_API hctr_status hctr_feature_importance(const hctr_use_options* options, int64_t rows, hctr_importance feature,
                                             void* user, double* auc);

#ifdef __cplusplus
}
#endif

#endif
