/* Part of huge_ctr.h: training. hctr/trainer.h documents the fields and calls of the same names. */
#ifndef HCTR_C_TRAINER_H
#define HCTR_C_TRAINER_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"
#include "hctr/c/c_model.h"
#include "hctr/c/c_use.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hctr_trainer hctr_trainer;

typedef struct hctr_trainer_options {
  size_t size;
  const char* config;      /* a file; with config_text: only its name in messages */
  const char* config_text; /* JSON; NULL: the file `config` is read */
  const char* const* changes;
  size_t change_count;
  const char* run_folder; /* NULL: no run folder is written */
  const char* resume;     /* a checkpoint, or "latest"; NULL: a new run */
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
  double mean_loss; /* mean loss since the last display; NaN without samples */
  double learning_rate;
  double samples_per_second;
  double seconds;
  int64_t evaluated_at; /* -1: never */
  int64_t passes;
  double epoch; /* NaN: unknown */
  /* metrics of the last evaluation; valid until the next call, in a callback until it returns */
  const hctr_metric_value* metrics;
  size_t metric_count;
} hctr_trainer_state;

/* -1 selects the config's value. */
typedef struct hctr_fit_options {
  size_t size;
  int64_t iteration, passes, display, eval_interval, snapshot;
} hctr_fit_options;

/* Files of weights and states; NULL: unchanged. table_files[i] is the file of table_names[i]. */
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

enum { HCTR_REACHED = 0, HCTR_PASS_ENDED = 1, HCTR_METRIC = 2, HCTR_STOPPED = 3 }; /* the reason why a call ended */

/* Called at a display or after an evaluation. A nonzero result stops training. */
typedef int (*hctr_trainer_callback)(void* user, const hctr_trainer_state* state);
HCTR_API hctr_status hctr_trainer_create(const hctr_trainer_options* options, hctr_trainer** trainer);
HCTR_API void hctr_trainer_destroy(hctr_trainer* trainer);
HCTR_API hctr_status hctr_trainer_on_display(hctr_trainer* trainer, hctr_trainer_callback callback, void* user);
HCTR_API hctr_status hctr_trainer_on_evaluation(hctr_trainer* trainer, hctr_trainer_callback callback, void* user);
/* iteration: 0 trains to the config's end. ended: receives the reason (HCTR_REACHED, ...); may be NULL, in all calls
 * below. */
HCTR_API hctr_status hctr_trainer_fit(hctr_trainer* trainer, int64_t iteration, int32_t* ended);
HCTR_API hctr_status hctr_trainer_fit_until(hctr_trainer* trainer, const hctr_fit_options* until, int32_t* ended);
/* Any thread. The running call ends after its current step with HCTR_STOPPED. Later calls continue training. */
HCTR_API void hctr_trainer_stop(hctr_trainer* trainer);
HCTR_API hctr_status hctr_trainer_step(hctr_trainer* trainer, int64_t iterations, int32_t* ended);
HCTR_API hctr_status hctr_trainer_step_samples(hctr_trainer* trainer, int64_t samples, const hctr_model_input* inputs,
                                               size_t input_count, int32_t* ended);
HCTR_API hctr_status hctr_trainer_evaluate(hctr_trainer* trainer, hctr_metric metric, void* user);
HCTR_API hctr_status hctr_trainer_evaluate_samples(hctr_trainer* trainer, int64_t samples,
                                                   const hctr_model_input* inputs, size_t input_count,
                                                   hctr_metric metric, void* user);
/* The caller must set state->size. */
HCTR_API hctr_status hctr_trainer_read_state(hctr_trainer* trainer, hctr_trainer_state* state);
/* Describes the input `index`, from 0, of hctr_trainer_step_samples(). count: receives the number of inputs; may be
 * NULL. */
HCTR_API hctr_status hctr_trainer_tensor(hctr_trainer* trainer, size_t index, hctr_tensor* tensor, size_t* count);
/* A negative rate selects the config's schedule. */
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
