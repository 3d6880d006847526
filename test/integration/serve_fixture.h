// Fixture: a service in this process that serves a test's model.
#pragma once

#include <atomic>
#include <bit>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "core/base/platform.h"
#include "scores_fixture.h"
#include "serve/service.h"
#include "support/http_client.h"

namespace hctr::test {

class ServeTest : public ScoresTest {
 protected:
  serve::ServeOptions options_for(std::vector<std::string> sources) {
    serve::ServeOptions options;
    options.sources = std::move(sources);
    options.http_port = options.metrics_port = 0;
    // the gRPC library is built without sanitizers, so sanitizers cannot see the library's locks
    options.grpc_port = kSanitized ? -1 : 0;
    options.device = DeviceChoice::cpu;
    options.threads = 1;
    options.instances = 2;
    options.surroundings.log = [this](Level, std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += cat(line, "\n");
    };
    return options;
  }
  std::string log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }
  static std::string list_of(const auto& values, size_t first, size_t count) {
    std::string text = "[";
    for (size_t i = first; i < first + count; ++i) text += cat(i == first ? "" : ",", Json(values[i]).text());
    return text + "]";
  }
  static std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                            const std::string& data) {
    return cat("{\"name\":\"", name, "\",\"datatype\":\"", type, "\",\"shape\":", shape, ",\"data\":", data, "}");
  }
  /// A request with the samples [first, first + count) as JSON, in the packed form.
  static std::string packed_request(const SampleArrays& samples, size_t first, size_t count) {
    const auto dim = static_cast<size_t>(samples.dense_dim);
    const std::vector<double> dense(samples.dense.begin(), samples.dense.end());  // JSON represents doubles exactly
    std::string inputs =
        tensor(samples.dense_name, "FP32", cat("[", count, ",", dim, "]"), list_of(dense, first * dim, count * dim));
    for (const SampleArrays::Keys& keys : samples.inputs) {
      const auto slots = static_cast<size_t>(keys.slots);
      const auto begin = static_cast<size_t>(keys.offsets[first * slots]);
      const auto end = static_cast<size_t>(keys.offsets[(first + count) * slots]);
      std::vector<int64_t> counts;
      for (size_t bag = first * slots; bag < (first + count) * slots; ++bag)
        counts.push_back(keys.offsets[bag + 1] - keys.offsets[bag]);
      inputs += cat(
          ",", tensor(keys.name, "INT64", cat("[", end - begin, "]"), list_of(keys.keys, begin, end - begin)), ",",
          tensor(keys.name + ".counts", "INT32", cat("[", count, ",", slots, "]"), list_of(counts, 0, counts.size())));
    }
    return cat("{\"inputs\":[", inputs, "]}");
  }
  static std::vector<float> scores_in(const std::string& answer, size_t output = 0) {
    const Json json = Json::parse(answer, "answer");
    std::vector<float> scores;
    for (const Json& value : *(*json.find("outputs")->array())[output].find("data")->array())
      scores.push_back(static_cast<float>(value.number()));
    return scores;
  }
  /// Adds an "outputs" list with these names to the request.
  static std::string with_outputs(const std::string& request, const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += cat(list.empty() ? "" : ",", "{\"name\":", Json(name).text(), "}");
    return with_change(request, "{\"inputs\"", cat("{\"outputs\":[", list, "],\"inputs\""));
  }
  static std::string shape_in(const std::string& answer, size_t output) {
    const Json json = Json::parse(answer, "answer");
    return (*json.find("outputs")->array())[output].find("shape")->text();
  }
  /// The strings in a list, or the names of its objects.
  static std::vector<std::string> names_in(const Json& list) {
    std::vector<std::string> names;
    for (const Json& one : *list.array()) names.push_back(one.string() ? *one.string() : *one.find("name")->string());
    return names;
  }
  static std::string error_in(const HttpAnswer& answer) {
    const Json json = Json::parse(answer.body, "answer");
    const Json* error = json.find("error");
    return error && error->string() ? *error->string() : "";
  }
  /// The bytes of `values`, as binary tensors contain them.
  static std::string bytes_of(const auto& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
  }

 private:
  std::mutex log_mutex_;
  std::string log_;
};

}  // namespace hctr::test
