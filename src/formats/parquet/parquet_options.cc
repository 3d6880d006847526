#include "formats/parquet/parquet_options.h"

namespace hctr {

Schema<ParquetOptions> parquet_options_schema() {
  return Schema<ParquetOptions>("parquet")
      .list("labels", &ParquetOptions::labels, label_column_schema(),
            "the label columns, by name or as objects; default: the columns in _metadata.json next to the files", false)
      .list("dense", &ParquetOptions::dense,
            dense_columns_schema("the dense value for a null or NaN; default: default_dense"),
            "the dense values, in order; default: the columns in _metadata.json", false)
      .list("slots", &ParquetOptions::slots, parquet_slot_columns_schema(),
            "the slots, in the order of the sparse inputs; default: the columns in _metadata.json", false)
      .opt("default_dense", &ParquetOptions::default_dense,
           "the default dense value for nulls and NaN; default: a null or NaN is a bad record")
      .opt("default_key", &ParquetOptions::default_key,
           "the default value for nulls in slots; \"\": a null gives no key; default: a null is a bad record")
      .opt("trim", &ParquetOptions::trim, "remove blanks and tabs around a text")
      .opt("missing", &ParquetOptions::missing, "texts that count as null, such as \"?\" or \"NA\", compared literally")
      .opt("hash_seed", &ParquetOptions::hash_seed, "seed of the hashes of values", between(0, 1LL << 48))
      .opt("number_format", &ParquetOptions::number_format,
           "default number format of labels, weights and dense values in texts; default: \"1234.5\"")
      .together([](ParquetOptions& options, const std::string& pointer, Problems& problems) {
        check_missing(options.missing, options.labels, pointer, problems);
        check_key_spaces(options.slots, true, pointer, problems);
      });
}

}  // namespace hctr
