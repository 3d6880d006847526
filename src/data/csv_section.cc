#include "data/csv_section.h"

#include "base/error.h"

namespace hctr {
namespace {

void one_character(const std::string& value, bool may_be_empty, const std::string& pointer, Problems& problems) {
  if (value.size() == 1 ? value != "\n" && value != "\r" : value.empty() && may_be_empty) return;
  problems.error(pointer, cat("expected one character", may_be_empty ? ", or an empty string for none" : "",
                              ", found \"", value, "\""));
}

void check_dense(CsvDense& dense, const std::string& pointer, Problems& problems) {
  const bool standardise = dense.transform == DenseTransform::standardise;
  for (const auto& [name, values] : {std::pair{"/mean", &dense.mean}, {"/std", &dense.std}}) {
    if (!standardise && !values->empty())
      problems.error(pointer + name, "only \"transform\": \"standardise\" has a use for it");
    if (standardise && values->size() != 1 && values->size() != dense.columns.size())
      problems.error(pointer + name, cat("expected one number for all columns or ", dense.columns.size(),
                                         ", one for each; found ", values->size()));
  }
  for (const double std : dense.std)
    if (!(std > 0)) problems.error(pointer + "/std", cat("expected numbers more than 0, found ", std));
}

void check_slots(CsvSlots& slots, const std::string& pointer, Problems& problems) {
  one_character(slots.separator, true, pointer + "/separator", problems);
  if (slots.buckets != 0 && slots.keys.value_or(KeyRule::hash) != KeyRule::hash)
    problems.error(pointer + "/buckets", "only \"keys\": \"hash\" has a use for it");
  if (slots.vocabulary.empty() == (slots.keys == KeyRule::vocabulary))
    problems.error(pointer + "/vocabulary",
                   slots.vocabulary.empty()
                       ? "\"keys\": \"vocabulary\" needs the file that holds the values, one a line"
                       : "only \"keys\": \"vocabulary\" has a use for it");
}

Schema<CsvDense> dense_schema(const char* fallback) {
  return Schema<CsvDense>("dense columns")
      .need("columns", &CsvDense::columns, "columns that become dense values, one each, in this order")
      .opt("transform", &CsvDense::transform,
           "what is done to the numbers: nothing, ln(1 + max(x, 0)), or (x - mean) / std")
      .opt("mean", &CsvDense::mean, "for standardise: one number, or one for each column")
      .opt("std", &CsvDense::std, "for standardise: one number, or one for each column")
      .opt("default", &CsvDense::fallback, fallback)
      .together(check_dense);
}

Schema<CsvSlots> slots_schema() {
  return Schema<CsvSlots>("slot columns")
      .need("columns", &CsvSlots::columns, "columns that become slots, one each, in this order")
      .opt("keys", &CsvSlots::keys,
           "how a value becomes a key: hashed; its line in a file; a decimal or hexadecimal number that is the key; "
           "left out: hashed")
      .opt("buckets", &CsvSlots::buckets, "for hash: keys of each column; 0: 63-bit keys", between(0, 1LL << 48))
      .opt("vocabulary", &CsvSlots::vocabulary, "for vocabulary: a text file with one value a line")
      .opt("separator", &CsvSlots::separator,
           "a cell holds several values with this character between them; empty: one")
      .opt("default", &CsvSlots::fallback, "the value that an empty cell counts as; left out: a slot without keys")
      .together(check_slots);
}

Schema<CsvSlots> parquet_slots_schema() {
  return Schema<CsvSlots>("slot columns")
      .need("columns", &CsvSlots::columns, "columns that become slots, one each, in this order")
      .opt("keys", &CsvSlots::keys,
           "how a value becomes a key, as for Csv; numbers are hashed and looked up as their decimal digits; left out: "
           "integers are "
           "the keys, text is hashed")
      .opt("buckets", &CsvSlots::buckets, "for hash: keys of each column; 0: 63-bit keys", between(0, 1LL << 48))
      .opt("vocabulary", &CsvSlots::vocabulary, "for vocabulary: a text file with one value a line")
      .opt("default", &CsvSlots::fallback,
           "the value that a null counts as, \"\" for none, so that it gives no key; left out: default_key")
      .together(check_slots);
}

template <class Group>
int64_t count_columns(const std::vector<Group>& groups) {
  size_t count = 0;
  for (const Group& group : groups) count += group.columns.size();
  return static_cast<int64_t>(count);
}

}  // namespace

int64_t columns_of(const std::vector<CsvDense>& groups) { return count_columns(groups); }
int64_t columns_of(const std::vector<CsvSlots>& groups) { return count_columns(groups); }

const std::vector<std::pair<std::string, DenseTransform>>& EnumWords<DenseTransform>::table() {
  static const std::vector<std::pair<std::string, DenseTransform>> words = {
      {"none", DenseTransform::none},
      {"log", DenseTransform::log},
      {"standardise", DenseTransform::standardise},
      {"standardize", DenseTransform::standardise}};
  return words;
}

const std::vector<std::pair<std::string, KeyRule>>& EnumWords<KeyRule>::table() {
  static const std::vector<std::pair<std::string, KeyRule>> words = {
      {"hash", KeyRule::hash}, {"vocabulary", KeyRule::vocabulary}, {"number", KeyRule::number}, {"hex", KeyRule::hex}};
  return words;
}

Schema<CsvPart> csv_schema() {
  return Schema<CsvPart>("csv")
      .opt("delimiter", &CsvPart::delimiter, "the character between cells, \"\\t\" for a tab")
      .opt("quote", &CsvPart::quote,
           "the character around cells that hold delimiters or line ends, doubled inside them; empty: none")
      .opt("header", &CsvPart::header, "the first line of each file names its columns, in an order of its own")
      .opt("columns", &CsvPart::columns,
           "without a header: the names of all columns; left out: their numbers, from \"1\" on")
      .need("labels", &CsvPart::labels, "columns that are the labels")
      .list("dense", &CsvPart::dense, dense_schema("the dense value of an empty cell; left out: 0"),
            "the dense values, in order", false)
      .list("slots", &CsvPart::slots, slots_schema(), "the slots, in the order of the sparse inputs", false)
      .opt("hash_seed", &CsvPart::hash_seed, "of the hashes of values", between(0, 1LL << 48))
      .together([](CsvPart& part, const std::string& pointer, Problems& problems) {
        part.given = true;
        one_character(part.delimiter, false, pointer + "/delimiter", problems);
        one_character(part.quote, true, pointer + "/quote", problems);
        if (part.delimiter == part.quote) problems.error(pointer + "/quote", "is the delimiter too");
        if (part.header && !part.columns.empty())
          problems.error(pointer + "/columns",
                         "the header names the columns; say \"header\": false where there is none");
      });
}

Schema<ParquetPart> parquet_schema() {
  return Schema<ParquetPart>("parquet")
      .opt("labels", &ParquetPart::labels,
           "columns that are the labels; left out: as _metadata.json beside the files has them")
      .list("dense", &ParquetPart::dense, dense_schema("the dense value of a null; left out: default_dense"),
            "the dense values, in order; left out: as _metadata.json has them", false)
      .list("slots", &ParquetPart::slots, parquet_slots_schema(),
            "the slots, in the order of the sparse inputs; left out: as _metadata.json has them", false)
      .opt("default_dense", &ParquetPart::default_dense,
           "the dense value of nulls where nothing else is said; left out: a null is a bad record")
      .opt("default_key", &ParquetPart::default_key,
           "the value that nulls in slots count as where nothing else is said, \"\" for none; left out: a null is a "
           "bad record")
      .opt("hash_seed", &ParquetPart::hash_seed, "of the hashes of values", between(0, 1LL << 48))
      .together([](ParquetPart& part, const std::string&, Problems&) { part.given = true; });
}

}  // namespace hctr
