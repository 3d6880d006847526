// The plug-in's only exported symbol.
#include <arrow/config.h>

#include "plugins/parquet/arrow_file.h"
#include "plugins/parquet/arrow_values.h"

extern "C" __attribute__((visibility("default"))) const hctr::ParquetPlugin* hctr_parquet_plugin() {
  static const std::string about = "Arrow C++ " + arrow::GetBuildInfo().version_string;
  static const hctr::ParquetPlugin plugin = {
      .version = hctr::kParquetPlugin,
      .about = about.c_str(),
      .open = hctr::open_arrow_file,
      .drop = [](void* owner) { delete static_cast<hctr::ValuesOwner*>(owner); },
      .create = hctr::create_arrow_writer,
  };
  return &plugin;
}
