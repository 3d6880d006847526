/* Part of huge_ctr.h, what is done with a saved model: hctr/use_model.h says what each field and call means. */
#ifndef HCTR_C_USE_H
#define HCTR_C_USE_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"
#include "hctr/c/c_model.h"

#ifdef __cplusplus
extern "C" {
#endif

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
/* The same with a model that is loaded, on one rank. source: samples with labels, or NULL: the eval_source of the
 * config. stop: NULL: nobody stops it. What matches nothing is a warning. */
HCTR_API hctr_status hctr_model_evaluate(hctr_model* model, const char* source, const hctr_stop* stop,
                                         hctr_metric metric, void* user, hctr_use_summary* summary);
/* out: a file that ends in .tsv, .csv or .parquet. keep: columns that are passed on. */
HCTR_API hctr_status hctr_predict(const hctr_use_options* options, const char* out, const char* const* keep,
                                  size_t keep_count, hctr_use_summary* summary);
/* out: a folder that is new, or empty. rows: of ONNX, samples that it gets with their scores. */
HCTR_API hctr_status hctr_export(const hctr_use_options* options, int32_t format, const char* out, int64_t rows,
                                 hctr_file file, void* user);
/* Of at most so many rows. auc: gets that of the scores as they are. */
HCTR_API hctr_status hctr_feature_importance(const hctr_use_options* options, int64_t rows, hctr_importance feature,
                                             void* user, double* auc);

#ifdef __cplusplus
}
#endif

#endif
