// Exports and imports embedding rows, and reports table statistics.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/embedding_handle.h"

using hctr::capi::call;
using hctr::capi::expect_given;
using hctr::capi::set_of;
using hctr::capi::text_of;

hctr_status hctr_embedding_rows(hctr_embedding* embedding, const char* table, int64_t* rows) {
  return call([&] {
    expect_given(rows, "hctr_embedding_rows(): the pointer to the number");
    *rows = set_of(embedding).rows(text_of(table, "the name of a table"));
  });
}

hctr_status hctr_embedding_export(hctr_embedding* embedding, const char* table, int states, int changed,
                                  hctr_rows_sink sink, void* user) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    const std::string name = text_of(table, "the name of a table");
    expect_given(reinterpret_cast<const void*>(sink), "hctr_embedding_export(): the sink");
    const auto pass = [&](const hctr::TableRows& rows) {
      std::vector<const float*> of_states;
      for (const auto state : rows.states) of_states.push_back(state.data());
      if (sink(user, static_cast<int64_t>(rows.keys.size()), rows.keys.data(), rows.vectors.data(), of_states.data(),
               static_cast<int32_t>(of_states.size())) != 0)
        throw hctr::Error(hctr::Kind::interrupted, "the sink ended the export");
    };
    if (changed != 0)
      set.export_changed_rows(name, states != 0, pass);
    else
      set.export_rows(name, states != 0, pass);
  });
}

hctr_status hctr_embedding_note_exported(hctr_embedding* embedding) {
  return call([&] { set_of(embedding).note_exported(); });
}

hctr_status hctr_embedding_import(hctr_embedding* embedding, const char* table, const hctr_array* keys,
                                  const hctr_array* vectors, const hctr_array* states, int32_t state_count) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(keys, "hctr_embedding_import(): the keys");
    const std::string what = "imported keys";
    if (keys->dtype != HCTR_I64) throw hctr::Error(hctr::Kind::usage, what + " are not i64");
    hctr::TableRows rows;
    rows.keys = {static_cast<const int64_t*>(hctr::capi::contiguous(*keys, 1, what)),
                 static_cast<size_t>(keys->shape[0])};
    const auto floats = [&](const hctr_array& array, const std::string& name) {
      if (array.dtype != HCTR_F32 || array.gpu >= 0)
        throw hctr::Error(hctr::Kind::usage, name + " are not f32 in host memory");
      return std::span(static_cast<const float*>(hctr::capi::contiguous(array, array.dims, name)),
                       static_cast<size_t>(hctr::capi::elements_of(array, name)));
    };
    if (vectors && vectors->data) rows.vectors = floats(*vectors, "imported vectors");
    if (state_count > 0) expect_given(states, "hctr_embedding_import(): the states");
    for (int32_t s = 0; s < state_count; ++s) rows.states.push_back(floats(states[s], "imported states"));
    set.import_rows(text_of(table, "the name of a table"), rows);
  });
}

hctr_status hctr_embedding_remove(hctr_embedding* embedding, const char* table, const int64_t* keys, int64_t count,
                                  int64_t* removed) {
  return call([&] {
    if (count < 0) throw hctr::Error(hctr::Kind::usage, hctr::cat("hctr_embedding_remove() of ", count, " keys"));
    if (count > 0) expect_given(keys, "hctr_embedding_remove(): the keys");
    const int64_t gone =
        set_of(embedding).remove_rows(text_of(table, "the name of a table"), {keys, static_cast<size_t>(count)});
    if (removed) *removed = gone;
  });
}

hctr_status hctr_embedding_removed_keys(hctr_embedding* embedding, const char* table, int64_t* keys, int64_t most,
                                        int64_t* count) {
  return call([&] {
    expect_given(count, "hctr_embedding_removed_keys(): the pointer to the count");
    if (most > 0) expect_given(keys, "hctr_embedding_removed_keys(): the pointer to the keys");
    const std::vector<int64_t> all = set_of(embedding).removed_keys(text_of(table, "the name of a table"));
    *count = static_cast<int64_t>(all.size());
    std::copy_n(all.begin(), std::clamp<int64_t>(most, 0, *count), keys);
  });
}

hctr_status hctr_embedding_figures(hctr_embedding* embedding, const char* table, hctr_figure figure, void* user) {
  return call([&] {
    expect_given(reinterpret_cast<const void*>(figure), "hctr_embedding_figures(): the callback");
    const std::string name = text_of(table, "the name of a table");
    const hctr::EmbeddingMemory memory = set_of(embedding).memory(name);
    figure(user, "rows", memory.rows);
    figure(user, "rows_on_host", memory.rows_on_host);
    figure(user, "rows_on_disk", memory.rows_on_disk);
    figure(user, "device_bytes", memory.device_bytes);
    figure(user, "host_bytes", memory.host_bytes);
    for (const auto& [what, value] : set_of(embedding).counts(name))
      if (what != "rows") figure(user, what.c_str(), value);
  });
}
