// The fuzzer program. Its own name, fuzz_<entry>, selects the entry.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/entries.h"

namespace {

void (*run)(hctr::fuzz::Bytes) = nullptr;
bool of_checkpoint_state = false;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  const std::string path = (*argv)[0], name = path.substr(path.rfind("fuzz_") + 5);
  for (const hctr::fuzz::Entry& entry : hctr::fuzz::entries())
    if (entry.name == name) run = entry.run;
  of_checkpoint_state = name == "checkpoint_state";
  if (run) return 0;
  std::fprintf(stderr, "there is no entry '%s'\n", name.c_str());
  std::exit(2);
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (of_checkpoint_state) return hctr::fuzz::mutate_checkpoint_state(data, size, max_size, seed, LLVMFuzzerMutate);
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run({data, size});
  return 0;
}
