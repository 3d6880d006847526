// The C interface of DeltaProducer.
#include <string>
#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/stream_options.h"

struct hctr_delta_producer {
  hctr::DeltaProducer producer;
  std::vector<int64_t> dims{};  // vector sizes of the tables of the current delta
};

namespace hctr::capi {
namespace {

hctr_delta_producer& producer_at(hctr_delta_producer* producer) {
  expect_given(producer, "the hctr_delta_producer");
  return *producer;
}

StreamedAbout about_of(const hctr_delta_about& from) {
  StreamedAbout to{
      .run = from.run ? from.run : "", .iteration = from.iteration, .base = from.base, .written = from.written};
  for (size_t t = 0; t < from.table_count; ++t) {
    const hctr_delta_table table = read_struct(from.tables, t, "hctr_delta_about: tables");
    expect_given(table.name, "hctr_delta_table: name");
    to.tables.push_back({.name = table.name,
                         .dim = table.dim,
                         .by_slot = table.by_slot != 0,
                         .rows = table.rows < 0 ? -1 : table.rows});
  }
  return to;
}

std::span<const int32_t> slots_of(const int32_t* slots, size_t count) {
  return slots ? std::span<const int32_t>(slots, count) : std::span<const int32_t>();
}

}  // namespace
}  // namespace hctr::capi

using hctr::capi::call;
using hctr::capi::expect_given;
using hctr::capi::producer_at;

hctr_status hctr_delta_producer_create(const hctr_stream_options* options, hctr_delta_producer** producer) {
  return call([&] {
    expect_given(producer, "hctr_delta_producer_create(): the address for the handle");
    const hctr_stream_options from = hctr::capi::read_struct(options, "hctr_stream_options");
    *producer = new hctr_delta_producer{hctr::DeltaProducer(hctr::capi::stream_options(from))};
  });
}

void hctr_delta_producer_destroy(hctr_delta_producer* producer) { delete producer; }

hctr_status hctr_delta_producer_set_wait(hctr_delta_producer* producer, double seconds) {
  return call([&] {
    if (!(seconds >= 0))
      throw hctr::Error(hctr::Kind::usage, hctr::cat("hctr_delta_producer_set_wait(): expected at least 0 seconds, "
                                                     "found ",
                                                     seconds));
    producer_at(producer).producer.wait_at_most(seconds);
  });
}

void hctr_delta_producer_stop(hctr_delta_producer* producer) {
  if (producer) producer->producer.stop();
}

hctr_status hctr_delta_producer_begin(hctr_delta_producer* producer, const hctr_delta_about* about) {
  return call([&] {
    hctr_delta_producer& to = producer_at(producer);
    const hctr::StreamedAbout from = hctr::capi::about_of(hctr::capi::read_struct(about, "hctr_delta_about"));
    to.producer.begin(from);
    to.dims.clear();
    for (const auto& table : from.tables) to.dims.push_back(table.dim);
  });
}

hctr_status hctr_delta_producer_rows(hctr_delta_producer* producer, size_t table, const hctr_array* keys,
                                     const hctr_array* vectors, const int32_t* slots) {
  return call([&] {
    hctr_delta_producer& to = producer_at(producer);
    expect_given(keys, "hctr_delta_producer_rows(): the keys");
    expect_given(vectors, "hctr_delta_producer_rows(): the vectors");
    const std::vector<int64_t> changed = hctr::capi::keys_of_array(*keys, "keys of a delta");
    if (table >= to.dims.size())
      throw hctr::Error(hctr::Kind::usage, hctr::cat("hctr_delta_producer_rows(): the table is ", table,
                                                     ", expected less than ", to.dims.size()));
    const std::vector<float> rows = hctr::capi::vectors_of_array(*vectors, static_cast<int64_t>(changed.size()),
                                                                 to.dims[table], "vectors of a delta");
    to.producer.rows(table, changed, rows, hctr::capi::slots_of(slots, changed.size()));
  });
}

hctr_status hctr_delta_producer_removed(hctr_delta_producer* producer, size_t table, const hctr_array* keys,
                                        const int32_t* slots) {
  return call([&] {
    expect_given(keys, "hctr_delta_producer_removed(): the keys");
    const std::vector<int64_t> removed = hctr::capi::keys_of_array(*keys, "removed keys of a delta");
    producer_at(producer).producer.removed(table, removed, hctr::capi::slots_of(slots, removed.size()));
  });
}

hctr_status hctr_delta_producer_file(hctr_delta_producer* producer, const char* name, const void* bytes, size_t count) {
  return call([&] {
    expect_given(name, "hctr_delta_producer_file(): the name");
    if (count > 0) expect_given(bytes, "hctr_delta_producer_file(): the bytes");
    producer_at(producer).producer.file(name, {static_cast<const char*>(bytes), count});
  });
}

hctr_status hctr_delta_producer_end(hctr_delta_producer* producer) {
  return call([&] { producer_at(producer).producer.end(); });
}
