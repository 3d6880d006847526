#include "serve_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/base/expect.h"
#include "core/base/proto_wire.h"
#include "core/base/thread_pool.h"
#include "prepare/generate/power_law.h"
#include "program/terminal.h"
#include "serve/grpc_front.h"
#include "serve/http_connection.h"
#include "serve/named_tensor.h"
#include "serve/proto_reader.h"
#include "serve_memory.h"

namespace hctr::bench {
namespace {

using serve::Datatype;
using serve::NamedTensor;
using Moment = std::chrono::steady_clock::time_point;

constexpr int64_t kMinute = 60'000'000;   // in microseconds
constexpr int64_t kBodies = 16;           // requests with different values
constexpr int64_t kMostBytes = 48 << 20;  // maximum bytes of all requests, except that at least two are made
constexpr const char* kService = "/inference.GRPCInferenceService/";

/// One connection, by gRPC or HTTP.
class Target {
 public:
  explicit Target(const ServeCase& given) : given_(given) {
    if (given.grpc)
      grpc_ = serve::connect_grpc(given.address);
    else
      http_ = std::make_unique<serve::HttpConnection>(given.address);
  }
  /// The model's inputs. A dimension of -1 may have any size.
  std::vector<NamedTensor> inputs();
  /// The first output in the metadata. HTTP only.
  NamedTensor output();
  void infer(const std::string& body, size_t json_bytes) {
    if (grpc_) {
      const serve::GrpcAnswer answer = serve::call_grpc(*grpc_, cat(kService, "ModelInfer"), body, kMinute);
      if (answer.status != 0)
        throw Error(Kind::data, cat("the service answered ", answer.status, ": ", answer.message));
      return;
    }
    const auto answer = http_->ask("POST", cat("/v2/models/", given_.model, "/infer"), body, json_bytes);
    if (answer.status != 200)
      throw Error(Kind::data, cat("the service answered ", answer.status, ": ", answer.body.substr(0, 300)));
  }

 private:
  const ServeCase& given_;
  std::unique_ptr<serve::HttpConnection> http_;
  std::unique_ptr<serve::GrpcClient> grpc_;
};

std::vector<NamedTensor> Target::inputs() {
  std::vector<NamedTensor> found;
  const auto add = [&](const std::string& name, const std::string& type, std::vector<int64_t> shape) {
    const auto known = serve::datatype_of(type);
    if (!known) throw Error(Kind::data, cat("input '", name, "' has the datatype '", type, "', which is unknown"));
    found.push_back({.name = name, .type = *known, .shape = std::move(shape)});
  };
  if (grpc_) {
    std::string request;
    serve::append_bytes_field(request, 1, given_.model);
    const serve::GrpcAnswer answer = serve::call_grpc(*grpc_, cat(kService, "ModelMetadata"), request, kMinute);
    if (answer.status != 0) throw Error(Kind::data, cat("metadata of the model: ", answer.message));
    for (serve::ProtoReader field(answer.response); field.next();) {
      if (field.number() != 4) continue;
      std::string name, type;
      std::vector<int64_t> shape;
      for (serve::ProtoReader input(field.bytes()); input.next();) {
        if (input.number() == 1) name = input.text();
        if (input.number() == 2) type = input.text();
        if (input.number() == 3) input.each(0, [&](uint64_t size) { shape.push_back(static_cast<int64_t>(size)); });
      }
      add(name, type, shape);
    }
    return found;
  }
  const auto answer = http_->ask("GET", cat("/v2/models/", given_.model));
  if (answer.status != 200) throw Error(Kind::data, cat("metadata of the model: ", answer.body.substr(0, 300)));
  const Json json = Json::parse(answer.body, "metadata");
  const Json* inputs = json.find("inputs");
  for (const Json& input : inputs && inputs->array() ? *inputs->array() : Json::Array{}) {
    std::vector<int64_t> shape;
    for (const Json& size : *input.find("shape")->array()) shape.push_back(static_cast<int64_t>(size.number()));
    add(*input.find("name")->string(), *input.find("datatype")->string(), shape);
  }
  return found;
}

NamedTensor Target::output() {
  const auto answer = http_->ask("GET", cat("/v2/models/", given_.model));
  const Json json = Json::parse(answer.body, "metadata");
  const Json* const outputs = json.find("outputs");
  if (!outputs || !outputs->array() || outputs->array()->empty())
    throw Error(Kind::data, cat("the metadata of model '", given_.model, "' has no outputs"));
  const Json& first = outputs->array()->front();
  NamedTensor output{.name = *first.find("name")->string()};
  for (const Json& size : *first.find("shape")->array()) {
    const auto value = static_cast<int64_t>(size.number());
    output.shape.push_back(value < 0 ? given_.samples : value);
  }
  return output;
}

/// Sets the unknown sizes of the inputs, and fills the inputs with random values. If an input has a ".counts" tensor,
/// each slot has one key.
void make_up(std::vector<NamedTensor>& inputs, const ServeCase& given, unsigned seed) {
  std::mt19937_64 random(seed);
  const int64_t most = given.slot_keys > 0 ? given.slot_keys : given.most_key;
  const PowerLaw powers(most, given.alpha);
  for (NamedTensor& input : inputs) {
    const auto counts = std::ranges::find(inputs, input.name + ".counts", &NamedTensor::name);
    const int64_t each = counts != inputs.end() ? counts->shape.back() : 1;
    for (int64_t& size : input.shape)
      if (size < 0) size = given.samples * each;
    const bool is_counts = input.name.ends_with(".counts");
    auto bytes = std::make_shared<std::string>();
    const int64_t columns = input.shape.size() > 1 ? input.shape.back() : each;
    for (int64_t i = 0; i < serve::elements_of(input); ++i) {
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      const int64_t slot = given.slot_keys > 0 ? i % columns : 0;
      const int64_t key = is_counts ? 1 : slot * most + powers.rank(uniform);
      const float value = static_cast<float>(random() % 1000) / 1000.0f;
      if (input.type == Datatype::f32)
        bytes->append(reinterpret_cast<const char*>(&value), 4);
      else if (input.type == Datatype::bytes)
        append_fixed(*bytes, 1, 4), *bytes += static_cast<char>('a' + key % 26);
      else
        append_fixed(*bytes, static_cast<uint64_t>(key), static_cast<int>(serve::size_of(input.type)));
    }
    input.data = *bytes;
    input.owner = bytes;
  }
}

struct Request {
  std::string body{};
  size_t json_bytes = 0;
};

/// A request whose tensors are in `memory`. `output`: the JSON of its output.
Request memory_request(const std::vector<NamedTensor>& inputs, RequestMemory& memory, const std::string& output) {
  std::string list;
  for (const NamedTensor& input : inputs)
    list += cat(list.empty() ? "" : ",", "{\"name\":", Json(input.name).text(), ",\"datatype\":\"",
                serve::word_of(input.type), "\",\"shape\":", serve::text_of_shape(input.shape),
                ",\"parameters\":", memory.add(input.data), "}");
  return {cat("{\"inputs\":[", list, "],\"outputs\":[", output, "]}")};
}

std::string request_body(const std::vector<NamedTensor>& inputs, const ServeCase& given, size_t& json_bytes) {
  std::string body, tail;
  if (given.grpc) {
    serve::append_bytes_field(body, 1, given.model);
    for (const NamedTensor& input : inputs) {
      std::string tensor, shape;
      for (const int64_t size : input.shape) append_varint(shape, static_cast<uint64_t>(size));
      serve::append_bytes_field(tensor, 1, input.name);
      serve::append_bytes_field(tensor, 2, serve::word_of(input.type));
      serve::append_bytes_field(tensor, 3, shape);
      serve::append_bytes_field(body, 5, tensor);
      serve::append_bytes_field(tail, 7, input.data);
    }
    return body + tail;
  }
  body = "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[";
  for (const NamedTensor& input : inputs) {
    body += cat(&input == inputs.data() ? "" : ",", "{\"name\":", Json(input.name).text(), ",\"datatype\":\"",
                serve::word_of(input.type), "\",\"shape\":", serve::text_of_shape(input.shape),
                ",\"parameters\":{\"binary_data_size\":", input.data.size(), "}}");
    tail += input.data;
  }
  body += "]}";
  json_bytes = body.size();
  return body + tail;
}

struct LoadRun {
  Moment begin, counts_from, end;
  std::mutex mutex{};
  std::vector<double> times{};  // in milliseconds
  std::exception_ptr failure{};
  std::atomic<bool> stop = false;
};

void ask_repeatedly(LoadRun& run, const ServeCase& given, const std::vector<Request>& requests, unsigned seed) try {
  Target target(given);
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gaps(given.rate > 0 ? given.rate / given.clients : 1);
  std::vector<double> own;
  size_t next = seed;
  for (Moment due = run.begin; !run.stop;) {
    if (given.rate > 0) {
      due += std::chrono::duration_cast<Moment::duration>(std::chrono::duration<double>(gaps(random)));
      if (due < run.end) std::this_thread::sleep_until(due);
    } else {
      due = std::chrono::steady_clock::now();
    }
    if (due >= run.end) break;
    const Request& request = requests[next++ % requests.size()];
    target.infer(request.body, request.json_bytes);
    if (due >= run.counts_from)
      own.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - due).count());
  }
  const std::lock_guard lock(run.mutex);
  run.times.insert(run.times.end(), own.begin(), own.end());
} catch (...) {
  const std::lock_guard lock(run.mutex);
  run.failure = std::current_exception();
  run.stop = true;
}

/// Requests with different values. With shared memory, all requests share the memory of the output.
std::vector<Request> make_requests(const ServeCase& given, std::unique_ptr<RequestMemory>& memory) {
  Target target(given);
  const std::vector<NamedTensor> shapes = target.inputs();
  std::vector<NamedTensor> inputs = shapes;
  make_up(inputs, given, 1);
  int64_t bytes = 1;
  for (const NamedTensor& input : inputs) bytes += std::ssize(input.data);
  const int64_t bodies = given.requests > 0 ? given.requests : std::clamp<int64_t>(kMostBytes / bytes, 2, kBodies);
  std::string output;
  if (given.shared_memory) {
    const NamedTensor first = target.output();
    const int64_t output_bytes = serve::elements_of(first) * int64_t{sizeof(float)};
    memory = std::make_unique<RequestMemory>(given.address, bodies * bytes + output_bytes);
    output = cat("{\"name\":", Json(first.name).text(), ",\"parameters\":", memory->reserve(output_bytes), "}");
  }
  std::vector<Request> requests;
  ThreadPool threads(usable_cores());
  std::vector<std::vector<NamedTensor>> made(static_cast<size_t>(threads.threads()), shapes);
  for (int64_t first = 0; first < bodies; first += std::ssize(made)) {
    const int64_t count = std::min(std::ssize(made), bodies - first);
    threads.parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        made[static_cast<size_t>(i)] = shapes;
        make_up(made[static_cast<size_t>(i)], given, static_cast<unsigned>(first + i + 1));
      }
    });
    for (const auto& one : std::span(made).first(static_cast<size_t>(count))) {
      Request request;
      if (memory)
        request = memory_request(one, *memory, output);
      else
        request.body = request_body(one, given, request.json_bytes);
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

}  // namespace

void bench_serve(const ServeCase& given, Report& report) {
  if (given.shared_memory && given.grpc) throw Error(Kind::usage, "--shared-memory needs HTTP: omit --grpc");
  std::unique_ptr<RequestMemory> memory;
  const std::vector<Request> requests = make_requests(given, memory);
  LoadRun run;
  const auto seconds = [](double count) {
    return std::chrono::duration_cast<Moment::duration>(std::chrono::duration<double>(count));
  };
  run.begin = std::chrono::steady_clock::now();
  run.counts_from = run.begin + seconds(given.seconds / 5);
  run.end = run.counts_from + seconds(given.seconds);
  std::vector<std::thread> clients;
  for (int c = 0; c < given.clients; ++c)
    clients.emplace_back([&, c] { ask_repeatedly(run, given, requests, static_cast<unsigned>(c)); });
  for (std::thread& client : clients) client.join();
  if (run.failure) std::rethrow_exception(run.failure);
  if (run.times.empty()) throw Error(Kind::data, "no request was answered in time: set a larger --seconds");
  std::sort(run.times.begin(), run.times.end());
  const std::string where = cat(given.grpc            ? "gRPC"
                                : given.shared_memory ? "shared memory"
                                                      : "HTTP",
                                ", ", given.samples, " samples, ", given.clients,
                                given.rate > 0 ? cat(" clients, ", given.rate, "/s due") : " clients",
                                given.requests > 0 ? cat(", ", given.requests, " requests") : "");
  const double rate = static_cast<double>(run.times.size()) / given.seconds;
  report.add("serve requests", where, rate, "/s");
  report.add("serve samples", where, rate * static_cast<double>(given.samples), "/s");
  for (const double percent : {50.0, 90.0, 99.0, 99.9}) {
    const auto at = static_cast<size_t>(percent / 100 * static_cast<double>(run.times.size()));
    report.add(cat("serve p", percent), where, run.times[std::min(at, run.times.size() - 1)], "ms");
  }
}

}  // namespace hctr::bench
