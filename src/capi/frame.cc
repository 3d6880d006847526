#include <memory>
#include <string>
#include <vector>

#include "capi/call.h"
#include "core/base/expect.h"
#include "formats/parquet/memory_table.h"

struct hctr_frame {
  explicit hctr_frame(std::shared_ptr<hctr::MemoryTable> table)
      : rows(table->info().rows), source(hctr::add_memory_source(std::move(table))) {}
  ~hctr_frame() { hctr::remove_memory_source(source); }
  hctr_frame(const hctr_frame&) = delete;

  int64_t rows;
  std::string source;
};

hctr_status hctr_frame_create(ArrowSchema* schema, ArrowArray* const* batches, size_t count, hctr_frame** frame) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(schema, "hctr_frame_create(): the schema");
    hctr::capi::expect_given(frame, "hctr_frame_create(): the pointer to the handle");
    std::vector<ArrowArray> all;
    for (size_t i = 0; i < count; ++i) {
      hctr::capi::expect_given(batches[i], "hctr_frame_create(): a batch");
      all.push_back(*batches[i]);
      batches[i]->release = nullptr;  // marks the caller's struct as moved
    }
    *frame = std::make_unique<hctr_frame>(hctr::memory_table(*schema, all)).release();
  });
}

hctr_status hctr_frame_from_stream(ArrowArrayStream* stream, hctr_frame** frame) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(stream, "hctr_frame_from_stream(): the stream");
    hctr::capi::expect_given(frame, "hctr_frame_from_stream(): the pointer to the handle");
    *frame = std::make_unique<hctr_frame>(hctr::memory_table(*stream)).release();
  });
}

int64_t hctr_frame_rows(const hctr_frame* frame) { return frame ? frame->rows : 0; }
const char* hctr_frame_source(const hctr_frame* frame) { return frame ? frame->source.c_str() : ""; }
void hctr_frame_destroy(hctr_frame* frame) { delete frame; }
