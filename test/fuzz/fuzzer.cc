// The fuzzer of the entry in the program's name: fuzz_<entry>.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/entries.h"

namespace {

void (*run)(hctr::fuzz::Bytes) = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  const std::string path = (*argv)[0], name = path.substr(path.rfind("fuzz_") + 5);
  for (const hctr::fuzz::Entry& entry : hctr::fuzz::entries())
    if (entry.name == name) run = entry.run;
  if (run) return 0;
  std::fprintf(stderr, "there is no entry '%s'\n", name.c_str());
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run({data, size});
  return 0;
}
