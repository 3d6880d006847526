#include "capi/store_view.h"

#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "core/base/expect.h"

namespace hctr::capi {
namespace {

const hctr_store_view& view_at(const hctr_store_view* view) {
  expect_given(view, "the hctr_store_view");
  return *view;
}

const StoreView::Table& table_at(const hctr_store_view& view, size_t table) {
  if (table >= view.tables.size())
    throw Error(Kind::usage, cat("there is no table ", table, ": the version has ", view.tables.size(), " tables"));
  return view.tables[table];
}

/// A caller's memory for `count` rows of a table.
Matrix rows_for(const StoreView::Table& table, const hctr_array* given, int64_t count) {
  const std::string what = cat("rows of table '", table.name, "'");
  expect_given(given, "hctr_store_get(): the rows");
  if (given->gpu >= 0) throw Error(Kind::usage, cat(what, " are on a GPU: pass host memory"));
  const Matrix matrix = matrix_of(*given, what);
  if (matrix.rows < count || matrix.columns != table.dim)
    throw Error(Kind::usage, cat(what, " have shape [", matrix.rows, ", ", matrix.columns, "], expected [", count, ", ",
                                 table.dim, "]"));
  return matrix;
}

std::vector<int64_t> keys_of_table(const StoreView::Table& table, const hctr_array* given) {
  expect_given(given, "hctr_store_get(): the keys");
  return keys_of_array(*given, cat("keys of table '", table.name, "'"));
}

int64_t get_rows_of(const StoreReading& reading, const hctr_store_view& view, size_t number, int32_t slot,
                    const hctr_array* keys, const hctr_array* rows, uint8_t* found) {
  const StoreView::Table& table = table_at(view, number);
  const std::vector<int64_t> wanted = keys_of_table(table, keys);
  const Matrix matrix = rows_for(table, rows, static_cast<int64_t>(wanted.size()));
  if (wanted.empty()) return 0;
  return reading.get(number, wanted, matrix.data, matrix.stride, found, slot);
}

}  // namespace
}  // namespace hctr::capi

void hctr_store_view_destroy(hctr_store_view* view) { delete view; }

hctr_status hctr_store_view_version(const hctr_store_view* view, const char** version, size_t* tables) {
  return hctr::capi::call([&] {
    const hctr_store_view& of = hctr::capi::view_at(view);
    if (version) *version = of.version.c_str();
    if (tables) *tables = of.tables.size();
  });
}

hctr_status hctr_store_view_table(const hctr_store_view* view, size_t index, hctr_store_table* table) {
  return hctr::capi::call([&] {
    const hctr::StoreView::Table& from = hctr::capi::table_at(hctr::capi::view_at(view), index);
    const hctr_store_table to{sizeof to, from.name.c_str(), from.dim, from.by_slot, from.default_value};
    hctr::capi::write_struct(to, table, "hctr_store_table");
  });
}

hctr_status hctr_store_get(const hctr_store_view* view, size_t table, int32_t slot, const hctr_array* keys,
                           const hctr_array* rows, uint8_t* found, int64_t* missing) {
  return hctr::capi::call([&] {
    const hctr_store_view& of = hctr::capi::view_at(view);
    const int64_t without = hctr::capi::get_rows_of(hctr::StoreReading(*of.view), of, table, slot, keys, rows, found);
    if (missing) *missing = without;
  });
}

hctr_status hctr_store_get_tables(const hctr_store_view* view, size_t count, const size_t* tables, const int32_t* slots,
                                  const hctr_array* keys, const hctr_array* rows, int64_t* missing) {
  return hctr::capi::call([&] {
    const hctr_store_view& of = hctr::capi::view_at(view);
    if (count > 0) {
      hctr::capi::expect_given(tables, "hctr_store_get_tables(): the tables");
      hctr::capi::expect_given(keys, "hctr_store_get_tables(): the keys");
      hctr::capi::expect_given(rows, "hctr_store_get_tables(): the rows");
    }
    const hctr::StoreReading reading(*of.view);
    int64_t without = 0;
    for (size_t i = 0; i < count; ++i)
      without += hctr::capi::get_rows_of(reading, of, tables[i], slots ? slots[i] : 0, keys + i, rows + i, nullptr);
    if (missing) *missing = without;
  });
}

hctr_status hctr_store_get_pooled(const hctr_store_view* view, size_t table, int32_t slot, const hctr_array* keys,
                                  const hctr_array* offsets, int32_t pooling, const hctr_array* vectors,
                                  int64_t* missing) {
  return hctr::capi::call([&] {
    const hctr_store_view& of = hctr::capi::view_at(view);
    const hctr::StoreView::Table& from = hctr::capi::table_at(of, table);
    hctr::capi::expect_given(offsets, "hctr_store_get_pooled(): the offsets");
    if (pooling < HCTR_SUM || pooling > HCTR_SQRTN)
      throw hctr::Error(hctr::Kind::usage, hctr::cat("hctr_store_get_pooled(): unknown pooling ", pooling));
    const std::vector<int64_t> wanted = hctr::capi::keys_of_table(from, keys),
                               bounds = hctr::capi::keys_of_array(*offsets, "the offsets of hctr_store_get_pooled()");
    const hctr::capi::Matrix to = hctr::capi::rows_for(from, vectors, static_cast<int64_t>(bounds.size()) - 1);
    const int64_t without = of.view->get_pooled(table, wanted, bounds, static_cast<hctr::StoreView::Pooling>(pooling),
                                                to.data, to.stride, slot);
    if (missing) *missing = without;
  });
}
