/* Part of huge_ctr.h, tables in memory, in the layout of Arrow:
 * https://arrow.apache.org/docs/format/CDataInterface.html */
#ifndef HCTR_C_FRAME_H
#define HCTR_C_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "hctr/c/c_basics.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
