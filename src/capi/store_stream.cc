// The C interface of StoreStream.
#include "hctr/store_stream.h"

#include <string>

#include "capi/call.h"
#include "capi/store_handle.h"
#include "capi/stream_options.h"

struct hctr_store_stream {
  hctr::StoreStream stream;
  std::string error{}, trouble{};  // the texts that the last calls returned to the caller
};

namespace hctr::capi {
namespace {

StoreStream& stream_at(hctr_store_stream* stream) {
  expect_given(stream, "the hctr_store_stream");
  return stream->stream;
}

StoreStreamOptions store_stream_options(const hctr_store_stream_options& from) {
  StoreStreamOptions to{.stream = stream_options(read_struct(&from.stream, "hctr_store_stream_options: stream"))};
  if (from.updates) to.updates = from.updates;
  to.hps = from.hps != 0;
  if (from.key_bytes != 0) to.key_bytes = from.key_bytes;
  return to;
}

}  // namespace
}  // namespace hctr::capi

using hctr::capi::call;
using hctr::capi::expect_given;
using hctr::capi::stream_at;

hctr_status hctr_store_stream_create(hctr_store* store, const char* model, const hctr_store_stream_options* options,
                                     hctr_store_stream** stream) {
  return call([&] {
    expect_given(stream, "hctr_store_stream_create(): the address for the handle");
    expect_given(model, "hctr_store_stream_create(): the model");
    const hctr_store_stream_options from = hctr::capi::read_struct(options, "hctr_store_stream_options");
    *stream = new hctr_store_stream{
        hctr::StoreStream(hctr::capi::store_at(store), model, hctr::capi::store_stream_options(from))};
  });
}

void hctr_store_stream_destroy(hctr_store_stream* stream) { delete stream; }

hctr_status hctr_store_stream_apply(hctr_store_stream* stream, double seconds, int64_t* applied) {
  return call([&] {
    const int64_t count = stream_at(stream).apply(seconds);
    if (applied) *applied = count;
  });
}

hctr_status hctr_store_stream_catch_up(hctr_store_stream* stream, double seconds, int64_t* applied) {
  return call([&] {
    const int64_t count = stream_at(stream).catch_up(seconds);
    if (applied) *applied = count;
  });
}

hctr_status hctr_store_stream_start(hctr_store_stream* stream) {
  return call([&] { stream_at(stream).start(); });
}

hctr_status hctr_store_stream_stop(hctr_store_stream* stream) {
  return call([&] { stream_at(stream).stop(); });
}

hctr_status hctr_store_stream_statistics(hctr_store_stream* stream, hctr_store_stream_state* state, const char** error,
                                         const char** trouble) {
  return call([&] {
    hctr::StoreStreamStatistics now = stream_at(stream).statistics();
    const hctr_store_stream_state to{sizeof to, hctr::capi::stream_statistics(now.stream), now.applied, now.rows,
                                     now.age_seconds};
    hctr::capi::write_struct(to, state, "hctr_store_stream_state");
    stream->error = std::move(now.error);
    stream->trouble = std::move(now.stream.trouble);
    if (error) *error = stream->error.c_str();
    if (trouble) *trouble = stream->trouble.c_str();
  });
}
