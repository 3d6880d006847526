// Exports and imports embedding rows, and reports table statistics.
#include <algorithm>
#include <span>
#include <vector>

#include "capi/call.h"
#include "capi/embedding_handle.h"

using hctr::capi::call;
using hctr::capi::expect_given;
using hctr::capi::set_of;
using hctr::capi::text_of;

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
