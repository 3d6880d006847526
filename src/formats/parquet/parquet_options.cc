#include "formats/parquet/parquet_options.h"

namespace hctr {

Schema<ParquetOptions> parquet_options_schema() {
  return Schema<ParquetOptions>("parquet")
      .list("labels", &ParquetOptions::labels, label_column_schema(),
            "columns that are the labels, by name or as objects; left out: as _metadata.json beside the files has them",
            false)
      .list("dense", &ParquetOptions::dense,
            dense_columns_schema("the dense value of a null or NaN; left out: default_dense"),
            "the dense values, in order; left out: as _metadata.json has them", false)
      .list("slots", &ParquetOptions::slots, parquet_slot_columns_schema(),
            "the slots, in the order of the sparse inputs; left out: as _metadata.json has them", false)
      .opt("default_dense", &ParquetOptions::default_dense,
           "the dense value of nulls and NaN where nothing else is said; left out: they are bad records")
      .opt("default_key", &ParquetOptions::default_key,
           "the value that nulls in slots count as where nothing else is said, \"\" for none; left out: a null is a "
           "bad record")
      .opt("trim", &ParquetOptions::trim, "blanks and tabs around a text are not part of it")
      .opt("missing", &ParquetOptions::missing, "texts that count as null, as \"?\" or \"NA\", to the letter")
      .opt("hash_seed", &ParquetOptions::hash_seed, "of the hashes of values", between(0, 1LL << 48))
      .opt("number_format", &ParquetOptions::number_format,
           "how texts have labels, weights and dense values where their columns do not say; left out: \"1234.5\"")
      .together([](ParquetOptions& options, const std::string& pointer, Problems& problems) {
        check_missing(options.missing, options.labels, pointer, problems);
        check_key_spaces(options.slots, true, pointer, problems);
      });
}

}  // namespace hctr
