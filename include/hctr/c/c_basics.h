/* Part of huge_ctr.h: errors, arrays of the caller, DLPack, log and environment. */
#ifndef HCTR_C_BASICS_H
#define HCTR_C_BASICS_H

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

#ifdef __cplusplus
}
#endif

#endif
