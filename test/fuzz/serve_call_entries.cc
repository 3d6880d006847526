// Fuzz entries for whole calls of the service, by HTTP and gRPC, and for its access to shared memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/entry_tools.h"
#include "serve/grpc_api.h"
#include "serve/http_api.h"
#include "serve/http_parser.h"
#include "serve/infer_message.h"

namespace hctr::fuzz {
namespace {

using serve::HttpParser;
using serve::Refusal;
using serve::ServeCore;

constexpr int64_t kRegionBytes = 4096;

/// System shared memory with a known content, which the entries register. Its name is "/hctr_fuzz_<process>".
class KnownMemory {
 public:
  KnownMemory() : name_("/hctr_fuzz_" + std::to_string(::getpid())) {
    (void)::shm_unlink(name_.c_str());
    file_ = ::shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    expect(file_ >= 0 && ::ftruncate(file_, kRegionBytes) == 0);
    for (size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 37 % 251);
    restore();
  }
  ~KnownMemory() {
    ::close(file_);
    (void)::shm_unlink(name_.c_str());
  }
  KnownMemory(const KnownMemory&) = delete;
  KnownMemory& operator=(const KnownMemory&) = delete;

  const std::string& name() const { return name_; }
  const std::string& content() const { return content_; }
  std::string now() const {
    std::string bytes(kRegionBytes, '\0');
    expect(::pread(file_, bytes.data(), bytes.size(), 0) == kRegionBytes);
    return bytes;
  }
  void restore() const { expect(::pwrite(file_, content_.data(), content_.size(), 0) == kRegionBytes); }

 private:
  std::string name_, content_ = std::string(kRegionBytes, '\0');
  int file_ = -1;
};

const KnownMemory& known_memory() {
  static const KnownMemory memory;
  return memory;
}

/// A service without models, in which clients may register shared memory.
ServeCore& core_of_fuzzing() {
  static ServeCore core([] {
    serve::ServeOptions options;
    options.control = serve::ModelControl::on_request;
    options.shared_memory = options.cuda_shared_memory = true;
    options.device = DeviceChoice::cpu;
    return options;
  }());
  return core;
}

void forget_regions(serve::SharedRegions& regions) {
  for (const auto kind : {serve::SharedRegion::Kind::system, serve::SharedRegion::Kind::cuda}) regions.remove(kind, "");
}

/// The answer to one call. Another thread may set the answer.
template <class Value>
class OneAnswer {
 public:
  void set(Value value) {
    const std::lock_guard lock(mutex_);
    expect(!value_);  // a call has one answer
    value_ = std::move(value);
    filled_.notify_all();
  }
  Value get() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return value_.has_value(); });
    return *value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::optional<Value> value_;
};

struct GrpcResult {
  int status = 0;
  std::string message, response;
};

class FuzzedCall : public serve::GrpcCall {
 public:
  explicit FuzzedCall(std::shared_ptr<OneAnswer<GrpcResult>> result) : result_(std::move(result)) {}
  bool cancelled() const override { return false; }
  void answer(int status, const char* message, serve::GrpcBytes response) override {
    result_->set({status, message, std::string(response.data, static_cast<size_t>(response.size))});
  }

 private:
  std::shared_ptr<OneAnswer<GrpcResult>> result_;
};

constexpr const char* kMethods[] = {"/inference.GRPCInferenceService/ModelInfer",
                                    "/inference.GRPCInferenceService/ModelStreamInfer",
                                    "/inference.GRPCInferenceService/ModelReady",
                                    "/inference.GRPCInferenceService/ModelMetadata",
                                    "/inference.GRPCInferenceService/ModelConfig",
                                    "/inference.GRPCInferenceService/ModelStatistics",
                                    "/inference.GRPCInferenceService/RepositoryIndex",
                                    "/inference.GRPCInferenceService/RepositoryModelLoad",
                                    "/inference.GRPCInferenceService/RepositoryModelUnload",
                                    "/inference.GRPCInferenceService/SystemSharedMemoryRegister",
                                    "/inference.GRPCInferenceService/SystemSharedMemoryStatus",
                                    "/inference.GRPCInferenceService/SystemSharedMemoryUnregister",
                                    "/inference.GRPCInferenceService/CudaSharedMemoryRegister",
                                    "/inference.GRPCInferenceService/CudaSharedMemoryStatus",
                                    "/grpc.health.v1.Health/Check"};

/// The bytes of a region that the parameters of a tensor select.
struct Range {
  int64_t first = 0, count = 0;
};
std::optional<Range> range_in(const serve::Parameters& parameters) {
  if (!serve::text_parameter(parameters, "shared_memory_region")) return std::nullopt;
  return Range{serve::count_parameter(parameters, "shared_memory_offset").value_or(0),
               serve::count_parameter(parameters, "shared_memory_byte_size").value_or(-1)};
}

}  // namespace

void http_call(Bytes bytes) {
  serve::HttpLimits limits;
  limits.header_bytes = limits.body_bytes = 4096;
  serve::HttpApi api(core_of_fuzzing(), limits);
  HttpParser parser(limits);
  std::string text(bytes.begin(), bytes.end());
  if (const size_t at = text.find("/SHM"); at != text.npos) text.replace(at, 4, known_memory().name());
  for (size_t at = 0; at < text.size() && parser.refused() == 0;) {
    at += parser.feed(std::string_view(text).substr(at));
    if (!parser.complete()) continue;
    const auto answer = std::make_shared<OneAnswer<serve::HttpResponse>>();
    api.handle(parser.take(), [answer](serve::HttpResponse response) { answer->set(std::move(response)); });
    const serve::HttpResponse response = answer->get();
    expect(response.status >= 200 && response.status < 500);
    const bool packed = std::ranges::find(response.headers, std::pair<std::string, std::string>(
                                                                "Content-Encoding", "gzip")) != response.headers.end();
    if (!packed && !response.body.empty() && response.type == "application/json")
      (void)Json::parse(response.body, "a response");
  }
  forget_regions(core_of_fuzzing().regions());
}

void grpc_call(Bytes bytes) {
  const std::string_view method = kMethods[take(bytes) % std::size(kMethods)];
  const std::string request(bytes.begin(), bytes.end());
  serve::GrpcApi api(core_of_fuzzing());
  const auto result = std::make_shared<OneAnswer<GrpcResult>>();
  api.handle(method, {request.data(), static_cast<int64_t>(request.size())}, -1, std::make_shared<FuzzedCall>(result));
  const GrpcResult answer = result->get();
  expect(answer.status >= 0 && answer.status <= 16 && answer.status != 13);  // 13 is gRPC's status INTERNAL
  expect(answer.status == 0 || (answer.response.empty() && !answer.message.empty()));
  forget_regions(core_of_fuzzing().regions());
}

void shared_memory(Bytes bytes) {
  if (bytes.size() < 2 * sizeof(int64_t)) return;
  const KnownMemory& memory = known_memory();
  serve::SharedRegions regions({.system = true, .cuda = false});
  int64_t place[2];
  std::memcpy(place, bytes.data(), sizeof place);
  const auto owner = std::make_shared<std::string>(bytes.begin() + sizeof place, bytes.end());
  bool registered = true;
  try {
    regions.add_system("r", memory.name(), place[0], place[1]);
  } catch (const Refusal&) {
    registered = false;
  }
  // The range must lie within the region. This arithmetic cannot overflow.
  expect(registered ==
         (place[0] >= 0 && place[1] > 0 && place[1] <= kRegionBytes && place[0] <= kRegionBytes - place[1]));
  if (!registered) return;
  try {
    serve::InferRequest request = serve::read_infer_message(*owner, owner);
    regions.attach(request);  // all inputs lie in the region
    for (const serve::NamedTensor& input : request.inputs) {
      const std::optional<Range> range = range_in(input.parameters);
      if (!range) continue;
      expect(range->count >= 0 && range->first <= place[1] && range->count <= place[1] - range->first);
      expect(input.data ==
             memory.content().substr(static_cast<size_t>(place[0] + range->first), static_cast<size_t>(range->count)));
      serve::expect_whole(input);
    }
    for (const serve::WantedOutput& output : request.outputs) {
      serve::NamedTensor tensor{.name = output.name};
      const std::string data(static_cast<size_t>(1 + place[1] / 2), '\xff');
      tensor.data = data;
      if (!regions.deliver(output, tensor)) continue;
      const std::optional<Range> range = range_in(output.parameters);
      expect(range && range->count >= std::ssize(data));
      std::string wanted = memory.content();
      wanted.replace(static_cast<size_t>(place[0] + range->first), data.size(), data);
      const std::string now = memory.now();
      memory.restore();
      expect(now == wanted);
    }
  } catch (const Refusal&) {
  }
}

}  // namespace hctr::fuzz
