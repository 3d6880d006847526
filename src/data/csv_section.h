// The sections of a Data layer that say what columns mean: "csv" and "criteo" for texts, "parquet".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace hctr {

enum class DenseTransform { none, log, standardise };
enum class KeyRule { hash, vocabulary, number, hex };
enum class Wide;      // criteo_features.h
enum class Integers;  // criteo_features.h

template <>
struct EnumWords<DenseTransform> {
  static const std::vector<std::pair<std::string, DenseTransform>>& table();
};
template <>
struct EnumWords<KeyRule> {
  static const std::vector<std::pair<std::string, KeyRule>>& table();
};
template <>
struct EnumWords<Wide> {
  static const std::vector<std::pair<std::string, Wide>>& table();
};
template <>
struct EnumWords<Integers> {
  static const std::vector<std::pair<std::string, Integers>>& table();
};

/// Columns that become dense values, one each.
struct CsvDense {
  std::vector<std::string> columns;
  DenseTransform transform = DenseTransform::none;
  std::vector<double> mean, std;   ///< one for all of the columns, or one for each
  std::optional<double> fallback;  ///< none: 0 in a text, in Parquet an error
};

/// Columns that become slots, one each.
struct CsvSlots {
  std::vector<std::string> columns;
  std::optional<KeyRule> keys;  ///< none: hashed, but numbers of Parquet are keys themselves
  int64_t buckets = 0;
  std::string vocabulary, separator;
  std::optional<std::string> fallback;
};

struct CsvPart {
  bool given = false;
  std::string delimiter = ",", quote = "\"";
  bool header = true;
  std::vector<std::string> columns;
  std::vector<std::string> labels;
  std::vector<CsvDense> dense;
  std::vector<CsvSlots> slots;
  int64_t hash_seed = 0;
};
Schema<CsvPart> csv_schema();

/// Columns of Parquet files, where _metadata.json does not name them, and what nulls are.
struct ParquetPart {
  bool given = false;
  std::vector<std::string> labels;
  std::vector<CsvDense> dense;
  std::vector<CsvSlots> slots;
  std::optional<double> default_dense;
  std::optional<std::string> default_key;
  int64_t hash_seed = 0;
};
Schema<ParquetPart> parquet_schema();

/// Columns that the groups name.
int64_t columns_of(const std::vector<CsvDense>&);
int64_t columns_of(const std::vector<CsvSlots>&);

/// The options of criteo2hugectr, by their names.
struct CriteoPart {
  bool given = false;
  Wide wide{};          ///< none
  Integers integers{};  ///< dense
  int64_t buckets = 0, key_bits = 64;
};
Schema<CriteoPart> criteo_schema();

}  // namespace hctr
