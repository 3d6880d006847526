// The fuzzer of one entry, which HCTR_FUZZ_ENTRY names.
#include "fuzz/entries.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hctr::fuzz::HCTR_FUZZ_ENTRY({data, size});
  return 0;
}
