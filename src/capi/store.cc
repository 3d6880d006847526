#include "hctr/store.h"

#include <memory>
#include <string>
#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/store_handle.h"
#include "capi/store_view.h"
#include "core/base/expect.h"
#include "core/base/log.h"
#include "infer/store_models.h"

namespace hctr::capi {
namespace {

std::string text_or_none(const char* text) { return text ? text : ""; }

StoreTableSource source_of(const hctr_store_source& from) {
  expect_given(from.name, "hctr_store_source: name");
  StoreTableSource to{.name = from.name,
                      .dim = from.dim,
                      .by_slot = from.by_slot != 0,
                      .default_value = from.default_value,
                      .model_file = text_or_none(from.model_file),
                      .file = text_or_none(from.file),
                      .keys = text_or_none(from.keys_file),
                      .vectors = text_or_none(from.vectors_file)};
  if (!from.keys.data) return to;
  struct Rows {
    std::vector<int64_t> keys;
    std::vector<float> vectors;
  };
  const auto rows = std::make_shared<Rows>();
  rows->keys = keys_of_array(from.keys, cat("keys of table '", from.name, "'"));
  rows->vectors = vectors_of_array(from.vectors, static_cast<int64_t>(rows->keys.size()), from.dim,
                                   cat("vectors of table '", from.name, "'"));
  to.rows = [rows](const StoreRowSink& sink) { sink({}, rows->keys, rows->vectors); };
  return to;
}

/// A caller's update, with the memory that its spans refer to.
struct GivenUpdate {
  std::string table;
  int32_t slot;
  std::vector<int64_t> keys, removed;
  std::vector<float> vectors;
  StoreTableUpdate as_update() const {
    return {.table = table, .slot = slot, .keys = keys, .rows = vectors.data(), .removed = removed};
  }
};

GivenUpdate update_of(const hctr_store_update& from, const StoreView& view) {
  expect_given(from.table, "hctr_store_update: table");
  GivenUpdate to{.table = from.table, .slot = from.slot, .keys = {}, .removed = {}, .vectors = {}};
  const int64_t dim = view.tables()[view.table(from.table)].dim;
  if (from.keys.data) {
    to.keys = keys_of_array(from.keys, cat("keys of table '", from.table, "'"));
    to.vectors = vectors_of_array(from.vectors, static_cast<int64_t>(to.keys.size()), dim,
                                  cat("vectors of table '", from.table, "'"));
  }
  if (from.removed.data) to.removed = keys_of_array(from.removed, cat("removed keys of table '", from.table, "'"));
  return to;
}

void set_count(int64_t* to, int64_t count) {
  if (to) *to = count;
}

}  // namespace
}  // namespace hctr::capi

hctr_status hctr_store_open(const hctr_store_options* options, hctr_store** store) {
  return hctr::capi::call([&] {
    const hctr_store_options from = hctr::capi::read_struct(options, "hctr_store_options");
    hctr::capi::expect_given(store, "hctr_store_open(): the pointer to the handle");
    if (!from.config && !from.config_text)
      throw hctr::Error(hctr::Kind::usage, "hctr_store_options: neither config nor config_text is given");
    hctr::Surroundings around;
    hctr::capi::set_surroundings(around, from.getenv, from.setenv);
    around.log = hctr::capi::log_sink(from.log, from.log_user);
    hctr::Store opened = hctr::open_store(from.config ? from.config : "the config of the store",
                                          hctr::capi::text_or_none(from.config_text), from.loads == 0, around);
    *store = std::make_unique<hctr_store>(hctr_store{std::move(opened), std::move(around)}).release();
  });
}

void hctr_store_destroy(hctr_store* store) { delete store; }

hctr_status hctr_store_load(hctr_store* store, const hctr_store_model* model) {
  return hctr::capi::call([&] {
    hctr::Store& to = hctr::capi::store_at(store);
    const hctr_store_model from = hctr::capi::read_struct(model, "hctr_store_model");
    hctr::capi::expect_given(from.name, "hctr_store_model: name");
    if ((from.model != nullptr) == (from.table_count > 0))
      throw hctr::Error(hctr::Kind::usage, "hctr_store_model: needs either model or tables");
    hctr::StoreModelSection section;
    section.name = from.name;
    if (from.version) section.version = from.version;
    section.model = hctr::capi::text_or_none(from.model);
    section.miss_is_error = from.miss_is_error != 0;
    hctr::StoreModel loaded = hctr::store_model(section, store->surroundings, hctr::Log(store->surroundings.log));
    for (size_t t = 0; t < from.table_count; ++t)
      loaded.tables.push_back(
          hctr::capi::source_of(hctr::capi::read_struct(from.tables, t, "hctr_store_model: tables")));
    to.load(loaded);
  });
}

hctr_status hctr_store_activate(hctr_store* store, const char* model, const char* version) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(model, "hctr_store_activate(): the model");
    hctr::capi::expect_given(version, "hctr_store_activate(): the version");
    hctr::capi::store_at(store).activate(model, version);
  });
}

hctr_status hctr_store_unload(hctr_store* store, const char* model, const char* version) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(model, "hctr_store_unload(): the model");
    hctr::capi::expect_given(version, "hctr_store_unload(): the version");
    hctr::capi::store_at(store).unload(model, version);
  });
}

hctr_status hctr_store_update_from(hctr_store* store, const char* model, const char* prefix, int64_t* applied) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(model, "hctr_store_update_from(): the model");
    hctr::capi::expect_given(prefix, "hctr_store_update_from(): the prefix");
    hctr::capi::set_count(applied, hctr::capi::store_at(store).update(model, prefix));
  });
}

hctr_status hctr_store_apply_delta(hctr_store* store, const char* model, const char* folder, int64_t* applied) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(model, "hctr_store_apply_delta(): the model");
    hctr::capi::expect_given(folder, "hctr_store_apply_delta(): the folder");
    hctr::capi::set_count(applied, hctr::capi::store_at(store).apply_delta(model, folder));
  });
}

hctr_status hctr_store_apply(hctr_store* store, const char* model, int64_t iteration, const hctr_store_update* updates,
                             size_t count, int64_t* applied) {
  return hctr::capi::call([&] {
    hctr::Store& to = hctr::capi::store_at(store);
    hctr::capi::expect_given(model, "hctr_store_apply(): the model");
    const hctr::StoreView view = to.view(model);
    std::vector<hctr::capi::GivenUpdate> given;
    std::vector<hctr::StoreTableUpdate> all;
    for (size_t i = 0; i < count; ++i)
      given.push_back(
          hctr::capi::update_of(hctr::capi::read_struct(updates, i, "hctr_store_apply(): the updates"), view));
    for (const hctr::capi::GivenUpdate& one : given) all.push_back(one.as_update());
    hctr::capi::set_count(applied, to.apply(model, iteration, all));
  });
}

hctr_status hctr_store_refresh(hctr_store* store, int32_t* changed) {
  return hctr::capi::call([&] {
    const bool found = hctr::capi::store_at(store).refresh();
    if (changed) *changed = found;
  });
}

hctr_status hctr_store_writable(hctr_store* store, int32_t* writable) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(writable, "hctr_store_writable(): the pointer to the result");
    *writable = hctr::capi::store_at(store).writable();
  });
}

hctr_status hctr_store_models(hctr_store* store, hctr_store_models_sink sink, void* user) {
  return hctr::capi::call([&] {
    if (!sink) throw hctr::Error(hctr::Kind::usage, "hctr_store_models(): the callback is NULL");
    for (const hctr::StoreModelStatistics& one : hctr::capi::store_at(store).models()) {
      const hctr_store_model_state state{sizeof state,    one.model.c_str(), one.version.c_str(), one.active,
                                         one.iteration,   one.updates,       one.updated_rows,    one.removed_rows,
                                         one.age_seconds, one.waiting};
      sink(user, &state);
    }
  });
}

hctr_status hctr_store_levels(hctr_store* store, hctr_store_levels_sink sink, void* user) {
  return hctr::capi::call([&] {
    if (!sink) throw hctr::Error(hctr::Kind::usage, "hctr_store_levels(): the callback is NULL");
    for (const hctr::StoreTableStatistics& one : hctr::capi::store_at(store).tables())
      for (const auto& level : one.levels) {
        const hctr_store_level_state state{sizeof state,      one.model.c_str(),  one.version.c_str(),
                                           one.table.c_str(), level.name.c_str(), level.rows,
                                           level.bytes,       level.asked,        level.found};
        sink(user, &state);
      }
  });
}

hctr_status hctr_store_verify(hctr_store* store, int64_t* rows) {
  return hctr::capi::call([&] { hctr::capi::set_count(rows, hctr::capi::store_at(store).verify()); });
}

hctr_status hctr_store_compact(hctr_store* store, int64_t* bytes) {
  return hctr::capi::call([&] { hctr::capi::set_count(bytes, hctr::capi::store_at(store).compact()); });
}

hctr_status hctr_store_view_create(hctr_store* store, const char* model, hctr_store_view** view) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(model, "hctr_store_view_create(): the model");
    hctr::capi::expect_given(view, "hctr_store_view_create(): the pointer to the handle");
    *view = std::make_unique<hctr_store_view>(hctr::capi::store_at(store).view(model)).release();
  });
}
