/* Part of huge_ctr.h: data frames in memory, in Arrow's layout:
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

/* A data frame. Its columns have numbers, booleans, texts, lists of these types, or dictionaries. hctr_frame_source()
 * names the frame as a data source in this process, in place of a file, for a Data layer that names columns (Csv,
 * Parquet). Nothing is copied. */
typedef struct hctr_frame hctr_frame;
/* Takes ownership of schema and batches, even if the call fails. */
HCTR_API hctr_status hctr_frame_create(struct ArrowSchema* schema, struct ArrowArray* const* batches, size_t count,
                                       hctr_frame** frame);
HCTR_API hctr_status hctr_frame_from_stream(struct ArrowArrayStream* stream, hctr_frame** frame);
HCTR_API int64_t hctr_frame_rows(const hctr_frame* frame);
/* The frame's source name, such as "memory:/1"; valid until the frame is destroyed. */
HCTR_API const char* hctr_frame_source(const hctr_frame* frame);
/* Drops the caller's reference. Running readers keep the data until they end. */
HCTR_API void hctr_frame_destroy(hctr_frame* frame);

#ifdef __cplusplus
}
#endif

#endif
