/* Part of huge_ctr.h: errors, the caller's arrays, DLPack, log and environment. */
#ifndef HCTR_C_BASICS_H
#define HCTR_C_BASICS_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values of error kinds equal the program's exit codes. */
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
/* The error message of this thread's last failed call; "" if no call has failed. Valid until this thread's next call.
 */
HCTR_API const char* hctr_error_message(void);

typedef int32_t hctr_dtype;
enum { HCTR_F32 = 0, HCTR_I32 = 1, HCTR_U32 = 2, HCTR_I64 = 3, HCTR_U64 = 4 };

/* An array in the caller's memory. */
typedef struct hctr_array {
  void* data;
  hctr_dtype dtype;
  int32_t dims;           /* at most 4 */
  const int64_t* shape;   /* [dims] */
  const int64_t* strides; /* [dims] in elements; NULL: the array is contiguous, in row-major order */
  int32_t gpu;            /* -1: host memory; else the GPU's index. Always set this field: 0 is the first GPU */
} hctr_array;

/* Structs of the DLPack header: https://github.com/dmlc/dlpack */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* Makes an array that refers to the tensor's memory and shape. The caller still owns the tensor, and must keep it alive
 * as long as the array is used. */
HCTR_API hctr_status hctr_array_from_dlpack(const struct DLManagedTensor* tensor, hctr_array* array);
HCTR_API hctr_status hctr_array_from_dlpack_versioned(const struct DLManagedTensorVersioned* tensor, hctr_array* array);
/* Makes a tensor of an array. The tensor's deleter calls release(owner), unless release is NULL. */
HCTR_API hctr_status hctr_array_to_dlpack(const hctr_array* array, void (*release)(void* owner), void* owner,
                                          struct DLManagedTensor** tensor);

/* Receives a log line; level 0: information, 1: a warning. Called by any thread. */
typedef void (*hctr_log)(void* user, int level, const char* line);

/* Functions like getenv() and setenv() of the C library, through which huge_ctr reads and sets environment variables:
 * OPENBLAS_CORETYPE for processors that OpenBLAS does not know, HCTR_* (docs/distributed.md), ${NAME} in configs. NULL:
 * no variable is read or set. */
typedef char* (*hctr_getenv)(const char* name);
typedef int (*hctr_setenv)(const char* name, const char* value, int replace);

#ifdef __cplusplus
}
#endif

#endif
