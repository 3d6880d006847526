#include "serve/served_parity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "config/json.h"
#include "core/base/expect.h"
#include "infer/prediction_source.h"
#include "serve/http_connection.h"

namespace hctr::serve {
namespace {

constexpr int64_t kSamplesAtATime = 8192;
constexpr int kClients = 4;

template <class T>
void append_tensor(PackedRequest& request, std::string& tail, const std::string& name, Datatype type,
                   const std::vector<int64_t>& shape, std::span<const T> values) {
  request.body +=
      cat(request.body.ends_with('[') ? "" : ",", "{\"name\":", Json(name).text(), ",\"datatype\":\"", word_of(type),
          "\",\"shape\":", text_of_shape(shape), ",\"parameters\":{\"binary_data_size\":", values.size_bytes(), "}}");
  tail.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

/// The outputs with all probabilities of a loss.
std::vector<const ServedOutput*> outputs_to_compare(const ModelVersion& version, const std::string& model) {
  std::vector<const ServedOutput*> outputs;
  for (const ServedOutput* output : version.outputs().listed())
    if (output->kind == ServedOutput::Kind::scores && output->whole_rows()) outputs.push_back(output);
  if (outputs.empty())
    throw Error(Kind::config, cat("model '", model,
                                  "' has no output of probabilities to compare: add the name of a "
                                  "loss to the \"output\" entries of config.pbtxt"));
  return outputs;
}

/// The scores of all outputs in a response, concatenated.
std::vector<float> scores_of(const HttpConnection::Answer& answer, const std::string& model) {
  if (answer.status != 200)
    throw Error(Kind::io, cat("the service answered ", answer.status, " to samples of model '", model,
                              "': ", answer.body.substr(0, 300)));
  const size_t json = answer.json_bytes();
  std::vector<float> scores((answer.body.size() - json) / sizeof(float));
  std::memcpy(scores.data(), answer.body.data() + json, scores.size() * sizeof(float));
  return scores;
}

struct ParityRun {
  const Service& service;
  const std::string& model;
  const SampleArrays& samples;
  const std::vector<const ServedOutput*>& outputs;
  const BatchResults& offline;
  // whether one request must contain all samples, because the service does not batch requests of this model
  bool whole = false;
  std::mutex mutex{};
  int64_t next = 0;
  Parity result{};
  std::exception_ptr failure{};
};

void ask_pieces(ParityRun& run, unsigned seed) try {
  HttpConnection connection(cat("127.0.0.1:", run.service.http_port()));
  std::mt19937 random(seed);
  for (;;) {
    int64_t count = 1 + static_cast<int64_t>(random() % 50), first = 0;
    {
      const std::lock_guard lock(run.mutex);
      first = run.next;
      if (first >= run.samples.samples || run.failure) return;
      count = run.whole ? run.samples.samples : std::min(count, run.samples.samples - first);
      run.next += count;
    }
    const PackedRequest request = packed_request(run.samples, first, count, run.outputs);
    const std::vector<float> scores = scores_of(
        connection.ask("POST", cat("/v2/models/", run.model, "/infer"), request.body, request.json_bytes), run.model);
    Parity own{.samples = count, .requests = 1};
    size_t at = 0;
    for (const ServedOutput* output : run.outputs) {
      const NamedTensor offline = run.offline.rows(*output, first, count);
      for (size_t i = 0; i < static_cast<size_t>(count * output->elements); ++i, ++at) {
        const float expected = element<float>(offline.data, i), got = at < scores.size() ? scores[at] : std::nanf("");
        if (std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(got)) continue;
        ++own.different;
        own.largest = std::max(own.largest, std::fabs(static_cast<double>(expected) - static_cast<double>(got)));
      }
    }
    const std::lock_guard lock(run.mutex);
    run.result.samples += own.samples;
    run.result.requests += own.requests;
    run.result.different += own.different;
    run.result.largest = std::max(run.result.largest, own.largest);
  }
} catch (...) {
  const std::lock_guard lock(run.mutex);
  run.failure = std::current_exception();
}

}  // namespace

PackedRequest packed_request(const SampleArrays& samples, int64_t first, int64_t count,
                             std::span<const ServedOutput* const> outputs) {
  PackedRequest request{.body = "{\"parameters\":{\"binary_data_output\":true},\"outputs\":["};
  for (const ServedOutput* output : outputs)
    request.body += cat(request.body.ends_with('[') ? "" : ",", "{\"name\":", Json(output->name).text(), "}");
  request.body += "],\"inputs\":[";
  std::string tail;
  if (samples.dense_dim > 0)
    append_tensor(request, tail, samples.dense_name, Datatype::f32, {count, samples.dense_dim},
                  std::span<const float>(samples.dense.data() + first * samples.dense_dim,
                                         static_cast<size_t>(count * samples.dense_dim)));
  for (const SampleArrays::Keys& keys : samples.inputs) {
    const int64_t* offsets = keys.offsets.data() + first * keys.slots;
    std::vector<int32_t> counts;
    for (int64_t bag = 0; bag < count * keys.slots; ++bag)
      counts.push_back(static_cast<int32_t>(offsets[bag + 1] - offsets[bag]));
    const int64_t all = offsets[count * keys.slots] - offsets[0];
    append_tensor(request, tail, keys.name, Datatype::i64, {all},
                  std::span<const int64_t>(keys.keys.data() + offsets[0], static_cast<size_t>(all)));
    append_tensor(request, tail, counts_name(keys.name), Datatype::i32, {count, keys.slots},
                  std::span<const int32_t>(counts));
  }
  request.body += "]}";
  request.json_bytes = request.body.size();
  request.body += tail;
  return request;
}

Parity compare_with_offline(const Service& service, const std::string& model) {
  const std::shared_ptr<ModelVersion> version = service.core().repository().find(model, "", nullptr);
  const ServedModel& loaded = version->model();
  const std::vector<const ServedOutput*> outputs = outputs_to_compare(*version, model);
  Parity all;
  SampleBatches batches(loaded.config(), prediction_source(loaded.config()), kSamplesAtATime);
  for (;;) {
    SampleArrays samples = batches.none();
    if (!batches.next(samples, kSamplesAtATime)) return all;
    const BatchResults offline = version->score_offline(samples);
    ParityRun run{.service = service,
                  .model = model,
                  .samples = samples,
                  .outputs = outputs,
                  .offline = offline,
                  .whole = !version->joins_requests()};
    std::vector<std::thread> clients;
    for (unsigned c = 0; c < kClients; ++c) clients.emplace_back([&run, c] { ask_pieces(run, c); });
    for (std::thread& client : clients) client.join();
    if (run.failure) std::rethrow_exception(run.failure);
    all.samples += run.result.samples;
    all.requests += run.result.requests;
    all.different += run.result.different;
    all.largest = std::max(all.largest, run.result.largest);
  }
}

}  // namespace hctr::serve
