// The C interface of DeltaSource.
#include <memory>
#include <string>

#include "capi/call.h"
#include "capi/stream_options.h"

struct hctr_delta_source {
  hctr::DeltaSource source;
  std::string position{}, trouble{};  // the texts that the last calls returned to the caller
};

struct hctr_delta {
  std::shared_ptr<const hctr::StreamedDelta> delta;
};

namespace hctr::capi {
namespace {

hctr_delta_source& source_at(hctr_delta_source* source) {
  expect_given(source, "the hctr_delta_source");
  return *source;
}

const StreamedDelta& delta_at(const hctr_delta* delta) {
  expect_given(delta, "the hctr_delta");
  return *delta->delta;
}

void expect_below(size_t index, size_t count, const char* what) {
  if (index >= count) throw Error(Kind::usage, cat("there is no ", what, " ", index, ": the delta has ", count));
}

template <class T>
const T* data_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace
}  // namespace hctr::capi

using hctr::capi::call;
using hctr::capi::delta_at;
using hctr::capi::expect_given;
using hctr::capi::source_at;

hctr_status hctr_delta_source_create(const hctr_stream_options* options, const char* position, const char* run,
                                     int64_t iteration, hctr_delta_source** source) {
  return call([&] {
    expect_given(source, "hctr_delta_source_create(): the address for the handle");
    const hctr_stream_options from = hctr::capi::read_struct(options, "hctr_stream_options");
    *source = new hctr_delta_source{
        hctr::DeltaSource(hctr::capi::stream_options(from), position ? position : "", run ? run : "", iteration)};
  });
}

void hctr_delta_source_destroy(hctr_delta_source* source) { delete source; }

hctr_status hctr_delta_source_next(hctr_delta_source* source, double seconds, hctr_delta** delta) {
  return call([&] {
    expect_given(delta, "hctr_delta_source_next(): the address for the delta");
    *delta = nullptr;
    if (auto next = source_at(source).source.next(seconds)) *delta = new hctr_delta{std::move(next)};
  });
}

hctr_status hctr_delta_source_taken(hctr_delta_source* source) {
  return call([&] { source_at(source).source.taken(); });
}

hctr_status hctr_delta_source_position(hctr_delta_source* source, const char** position) {
  return call([&] {
    hctr_delta_source& of = source_at(source);
    expect_given(position, "hctr_delta_source_position(): the address for the position");
    of.position = of.source.position();
    *position = of.position.c_str();
  });
}

hctr_status hctr_delta_source_stored(hctr_delta_source* source) {
  return call([&] { source_at(source).source.stored(); });
}

hctr_status hctr_delta_source_skip_to(hctr_delta_source* source, int64_t iteration) {
  return call([&] { source_at(source).source.skip_to(iteration); });
}

hctr_status hctr_delta_source_caught_up(hctr_delta_source* source, double seconds, int32_t* caught_up) {
  return call([&] {
    expect_given(caught_up, "hctr_delta_source_caught_up(): the address for the answer");
    *caught_up = source_at(source).source.caught_up(seconds) ? 1 : 0;
  });
}

hctr_status hctr_delta_source_statistics(hctr_delta_source* source, hctr_stream_statistics* statistics,
                                         const char** trouble) {
  return call([&] {
    hctr_delta_source& of = source_at(source);
    hctr::StreamStatistics now = of.source.statistics();
    hctr::capi::write_struct(hctr::capi::stream_statistics(now), statistics, "hctr_stream_statistics");
    of.trouble = std::move(now.trouble);
    if (trouble) *trouble = of.trouble.c_str();
  });
}

void hctr_delta_destroy(hctr_delta* delta) { delete delta; }

hctr_status hctr_delta_read_about(const hctr_delta* delta, hctr_delta_about* about, size_t* files) {
  return call([&] {
    const hctr::StreamedDelta& of = delta_at(delta);
    const hctr_delta_about to{sizeof to, of.about.run.c_str(),  of.about.iteration, of.about.base, of.about.written,
                              nullptr,   of.about.tables.size()};
    hctr::capi::write_struct(to, about, "hctr_delta_about");
    if (files) *files = of.files.size();
  });
}

hctr_status hctr_delta_read_table(const hctr_delta* delta, size_t index, hctr_delta_table* table,
                                  hctr_delta_rows* rows) {
  return call([&] {
    const hctr::StreamedDelta& of = delta_at(delta);
    hctr::capi::expect_below(index, of.about.tables.size(), "table");
    const hctr::StreamedAbout::Table& about = of.about.tables[index];
    const hctr_delta_table is{sizeof is, about.name.c_str(), about.dim, about.by_slot ? 1 : 0, about.rows};
    hctr::capi::write_struct(is, table, "hctr_delta_table");
    const hctr::StreamedDelta::Rows& from = of.tables.at(index);
    using hctr::capi::data_or_null;
    const hctr_delta_rows to{sizeof to,
                             from.keys.data(),
                             data_or_null(from.slots),
                             from.rows.data(),
                             static_cast<int64_t>(from.keys.size()),
                             from.removed.data(),
                             data_or_null(from.removed_slots),
                             static_cast<int64_t>(from.removed.size())};
    hctr::capi::write_struct(to, rows, "hctr_delta_rows");
  });
}

hctr_status hctr_delta_read_file(const hctr_delta* delta, size_t index, const char** name, const void** bytes,
                                 size_t* count) {
  return call([&] {
    const hctr::StreamedDelta& of = delta_at(delta);
    hctr::capi::expect_below(index, of.files.size(), "file");
    if (name) *name = of.files[index].first.c_str();
    if (bytes) *bytes = of.files[index].second.data();
    if (count) *count = of.files[index].second.size();
  });
}
