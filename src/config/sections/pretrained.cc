#include "config/sections/pretrained.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <type_traits>

#include "config/problems.h"
#include "config/sections/pretrained_files.h"
#include "core/base/expect.h"
#include "core/base/not_finite.h"
#include "engine/exchange/rank_embedding.h"
#include "formats/io/npy_file.h"
#include "formats/parquet/parquet_file.h"
#include "formats/parquet/parquet_values.h"

namespace hctr {
namespace {

constexpr int64_t kBlockRows = 8192;
constexpr const char *kKeyColumn = "key", *kVectorColumn = "vector";

struct VectorBlock {
  std::vector<int64_t> keys;
  std::vector<float> vectors;
};
using VectorSink = std::function<void(const VectorBlock&)>;

void read_npy(const Pretrained& from, int64_t dim, const VectorSink& sink) {
  NpyFile keys(from.keys), vectors(from.vectors);
  if (keys.columns() != 1)
    throw Error(Kind::data, cat("'", from.keys, "' has ", keys.columns(), " columns; expected one key per row"));
  if (vectors.columns() != dim)
    throw Error(Kind::data, cat("'", from.vectors, "' has vectors of ", vectors.columns(), " numbers, but table '",
                                from.table, "' has embedding_vec_size ", dim));
  if (keys.rows() != vectors.rows())
    throw Error(Kind::data, cat("'", from.keys, "' has ", keys.rows(), " keys, but '", from.vectors, "' has ",
                                vectors.rows(), " vectors"));
  for (int64_t first = 0; first < keys.rows(); first += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, keys.rows() - first);
    sink({keys.read_integers(rows), vectors.read_floats(rows)});
  }
}

int64_t field_of(const ParquetFileInfo& info, const std::string& file, const char* name, bool list) {
  std::vector<std::string> names;
  for (int64_t f = 0; f < info.field_count; ++f) names.emplace_back(info.fields[f].name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw Error(Kind::data, cat("'", file, "' has no column \"", name, "\"; it has ", one_of(names)));
  const int64_t at = found - names.begin();
  const ParquetField& field = info.fields[at];
  const bool number = with_values(field.type, nullptr, [](const auto*) {});
  if (field.list != list || !number || is_float(field.type) != list)
    throw Error(Kind::data, cat("column \"", name, "\" of '", file, "' is ", field.said, "; ",
                                list ? "lists of floats" : "integers", " are needed"));
  return at;
}

void read_parquet(const Pretrained& from, int64_t dim, const VectorSink& sink) {
  const std::shared_ptr<ParquetFile> file = open_parquet(from.file);
  const ParquetFileInfo& info = file->info();
  const int64_t key_field = field_of(info, from.file, kKeyColumn, false),
                vector_field = field_of(info, from.file, kVectorColumn, true);
  const auto check = [&](const char* problem) {
    if (problem) throw Error(Kind::data, cat("reading '", from.file, "': ", problem));
  };
  int64_t before = 0;
  for (int64_t group = 0; group < info.group_count; ++group) {
    const auto open = [&](int64_t field) {
      ParquetColumn* column = nullptr;
      check(file->open_column(group, field, ParquetForm::number, column));
      return std::unique_ptr<ParquetColumn>(column);
    };
    const std::unique_ptr<ParquetColumn> keys = open(key_field), vectors = open(vector_field);
    for (int64_t done = 0; done < info.groups[group].rows;) {
      struct Piece {
        void (*drop)(void* owner);
        ParquetValues values{};
        void* owner = nullptr;
        ~Piece() {
          if (owner) drop(owner);
        }
      } key{drop_of(*file)}, vector{drop_of(*file)};
      check(keys->read(key.values, key.owner));
      check(vectors->read(vector.values, vector.owner));
      const int64_t rows = key.values.rows;
      HCTR_EXPECT(rows > 0 && vector.values.rows == rows, "columns of ", rows, " and ", vector.values.rows, " rows");
      VectorBlock block;
      for (int64_t r = 0; r < rows; ++r) {
        const auto refuse = [&](const std::string& why) {
          throw Error(Kind::data, cat("row ", before + done + r, " of '", from.file, "' ", why));
        };
        if (!is_valid(key.values, r)) refuse("has no key");
        with_values(info.fields[key_field].type, key.values.values, [&](const auto* values) {
          if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(*values)>>)
            block.keys.push_back(static_cast<int64_t>(values[r]));
        });
        const int64_t begin = vector.values.list[r], end = vector.values.list[r + 1];
        if (!is_valid(vector.values, r) || end - begin != dim)
          refuse(cat("has ", is_valid(vector.values, r) ? end - begin : 0, " numbers in its vector, but table '",
                     from.table, "' has embedding_vec_size ", dim));
        for (int64_t i = begin; i < end; ++i) {
          if (!is_valid_item(vector.values, i)) refuse("lacks a number in its vector");
          block.vectors.push_back(static_cast<float>(number_at(info.fields[vector_field].type, vector.values, i)));
        }
      }
      done += rows;
      sink(block);
    }
    before += info.groups[group].rows;
  }
}

}  // namespace

Schema<Pretrained> pretrained_schema() {
  using P = Pretrained;
  return Schema<P>("pretrained")
      .need("table", &P::table, "the top of the embedding")
      .opt("file", &P::file, "a Parquet file with the columns key, of integers, and vector, of lists of floats")
      .opt("keys", &P::keys, "instead of file: an npy file of integer keys")
      .opt("vectors", &P::vectors, "with keys: an npy file of floats, one row per key")
      .opt("slot", &P::slot, "the slot of the keys, if rows are identified by slot and key", between(0, INT32_MAX))
      .together([](P& p, const std::string& pointer, Problems& problems) {
        const bool npy = !p.keys.empty() && !p.vectors.empty();
        if (npy == !p.file.empty() || p.keys.empty() != p.vectors.empty())
          problems.error(pointer, "needs either \"file\", or \"keys\" and \"vectors\"");
      });
}

void read_pretrained(const Pretrained& from, int64_t dim,
                     const std::function<void(std::span<const int64_t>, std::span<const float>)>& sink) {
  const auto pass = [&](const VectorBlock& block) { sink(block.keys, block.vectors); };
  if (from.file.empty())
    read_npy(from, dim, pass);
  else
    read_parquet(from, dim, pass);
}

bool load_pretrained(const Pretrained& from, Embedding& table, const Log& log) {
  const TableSpec& spec = table.spec();
  const std::string& name = from.file.empty() ? from.vectors : from.file;
  const int64_t rows_before = table.rows();
  int64_t rows = 0;
  bool wide_keys = false;
  const auto import = [&](const VectorBlock& block) {
    if (const int64_t at = find_not_finite(block.vectors); at >= 0)
      throw Error(Kind::data,
                  cat("'", name, "': number ", at % spec.dim, " of row ", rows + at / spec.dim, ", of key ",
                      block.keys[static_cast<size_t>(at / spec.dim)], ", is ", block.vectors[static_cast<size_t>(at)]));
    const std::vector<int32_t> slots(spec.identity_by_slot ? block.keys.size() : 0, static_cast<int32_t>(from.slot));
    table.import_rows({block.keys, slots, block.vectors, {}, {}});
    rows += static_cast<int64_t>(block.keys.size());
    wide_keys = wide_keys || std::any_of(block.keys.begin(), block.keys.end(),
                                         [](int64_t key) { return key < 0 || key > UINT32_MAX; });
  };
  in_context([&] { return cat("loading pretrained vectors of table '", from.table, "' from '", name, "'"); },
             [&] {
               if (from.file.empty())
                 read_npy(from, spec.dim, import);
               else
                 read_parquet(from, spec.dim, import);
             });
  if (const int64_t different = table.rows(); rows_before == 0 && different != rows)
    throw Error(Kind::data, cat("'", name, "' has ", rows, " vectors, but only ", different, " different keys"));
  log.info("Table '", from.table, "': ", rows, " pretrained vectors from '", name, "'; other keys get initial values.");
  return wide_keys;
}

}  // namespace hctr
