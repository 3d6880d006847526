/* The library for programs in C and in languages that call C. docs/library.md has examples.
 *
 * Calls return HCTR_OK or the kind of an error; hctr_error_message() says what was wrong. Structs begin with their
 * size: set it to sizeof the struct, and all that is 0 has its default. A handle is used by one thread at a time, but
 * for hctr_model_score() and stores, which any number of threads may call. Nothing prints, ends the process or reads
 * the environment.
 */
#ifndef HCTR_HUGE_CTR_H
#define HCTR_HUGE_CTR_H

/* What is declared, by idea. Programs include this header, not its parts. */
#include "hctr/c/c_basics.h"
#include "hctr/c/c_embedding.h"
#include "hctr/c/c_frame.h"
#include "hctr/c/c_model.h"
#include "hctr/c/c_store.h"
#include "hctr/c/c_stream.h"
#include "hctr/c/c_trainer.h"
#include "hctr/c/c_use.h"

#endif
