#include "core/base/build_info.h"

#include "build_commit.h"  // generated: HCTR_COMMIT
#include "core/base/expect.h"

namespace hctr {

std::string_view version() { return HCTR_VERSION; }

std::string build_name() { return cat(version(), " (", HCTR_COMMIT, ")"); }

std::vector<std::pair<std::string, std::string>> build_facts() {
  return {{"commit", HCTR_COMMIT},      {"build", HCTR_BUILD_TYPE}, {"CUDA", HCTR_CUDA_VERSION},
          {"NCCL", HCTR_NCCL_VERSION},  {"MPI", HCTR_MPI_VERSION},  {"Parquet", HCTR_PARQUET_VERSION},
          {"Kafka", HCTR_KAFKA_VERSION}};
}

std::string version_text(std::string_view program) {
  std::string text = cat(program, " ", version());
  for (const auto& [name, value] : build_facts())
    text += cat("\n  ", name, ":", std::string(8 - name.size(), ' '), value);
  return text;
}

}  // namespace hctr
