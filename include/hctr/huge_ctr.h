/* The library's interface for C, and for languages that can call C. docs/library.md has examples.
 *
 * Calls return HCTR_OK or the kind of an error; hctr_error_message() returns the message. The first field of a struct
 * is its size: set this field to sizeof the struct. Other fields that are 0 have their defaults. A handle is used by
 * one thread at a time; exceptions are hctr_model_score() and stores, which are thread-safe. No call prints, ends the
 * process or reads the environment.
 */
#ifndef HCTR_HUGE_CTR_H
#define HCTR_HUGE_CTR_H

/* Programs include this header instead of the parts below. */
#include "hctr/c/c_basics.h"
#include "hctr/c/c_embedding.h"
#include "hctr/c/c_frame.h"
#include "hctr/c/c_model.h"
#include "hctr/c/c_store.h"
#include "hctr/c/c_store_cache.h"
#include "hctr/c/c_stream.h"
#include "hctr/c/c_trainer.h"
#include "hctr/c/c_use.h"

#endif
