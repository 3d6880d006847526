#include "base/build_info.h"

#include "base/error.h"
#include "build_commit.h"  // generated: HCTR_COMMIT

namespace hctr {

std::string_view version() { return HCTR_VERSION; }

std::string version_text(std::string_view program) {
  return cat(program, " ", version(), "\n  commit:  ", HCTR_COMMIT, "\n  build:   ", HCTR_BUILD_TYPE,
             "\n  CUDA:    ", HCTR_CUDA_VERSION, "\n  NCCL:    ", HCTR_NCCL_VERSION, "\n  MPI:     ", HCTR_MPI_VERSION,
             "\n  Parquet: ", HCTR_PARQUET_VERSION);
}

}  // namespace hctr
