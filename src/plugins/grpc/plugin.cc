// libhuge_ctr_grpc.so: the only code that uses gRPC.
#include <absl/synchronization/mutex.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "plugins/grpc/grpc_service.h"
#include "serve/grpc_plugin.h"

namespace hctr::serve {
namespace {

thread_local std::string problem;
/// The messages of all connections together may take the memory of this many messages of the maximum size.
constexpr size_t kMostMessages = 16;
constexpr int kHandshakeMs = 30'000;  // equals HttpLimits::request_time

class CarryingServer : public GrpcServer {
 public:
  CarryingServer(int64_t most_bytes, GrpcHandler handler) : service_(handler) {
    const auto most = static_cast<int>(std::min<int64_t>(most_bytes, std::numeric_limits<int>::max()));
    grpc::ServerBuilder builder;
    connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(most);
    builder.SetMaxSendMessageSize(-1);
    grpc::ResourceQuota quota("huge_ctr");
    quota.Resize(static_cast<size_t>(most_bytes) * kMostMessages);
    builder.SetResourceQuota(quota);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
    server_ = builder.BuildAndStart();
  }
  ~CarryingServer() override { drain(0); }
  bool runs() const { return server_ != nullptr; }
  void take_connection(int socket) override {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    connections_->HandleNewConnection(&connection);
  }
  void drain(int64_t ms) override {
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(ms));
  }

 private:
  CarryingService service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

class CarryingClient : public GrpcClient {
 public:
  explicit CarryingClient(const std::string& address) : stub_(channel_to(address)) {}
  void call(const char* method, GrpcBytes request, int64_t timeout_us, void* self,
            void (*take)(void* self, int status, const char* message, GrpcBytes response)) override {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::microseconds(timeout_us));
    grpc::CompletionQueue queue;
    grpc::ByteBuffer response;
    grpc::Status status;
    const auto reader = stub_.PrepareUnaryCall(&context, method, buffer_of(request), &queue);
    reader->StartCall();
    reader->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    (void)queue.Next(&tag, &ok);
    const std::string bytes = status.ok() ? joined(response) : std::string();
    take(self, status.error_code(), status.error_message().c_str(), {bytes.data(), static_cast<int64_t>(bytes.size())});
  }

 private:
  static std::shared_ptr<grpc::Channel> channel_to(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // each client needs its own connection
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::GenericStub stub_;
};

/// Disables gRPC's log, which would go to the program's standard error stream. Also disables the deadlock detection of
/// gRPC's mutexes. Debian builds gRPC with this detection, which takes a third of the instructions that gRPC needs for
/// a call.
void prepare_grpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function([](gpr_log_func_args*) {});
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  });
}

template <class Body>
const char* caught(const Body& body) try {
  prepare_grpc();
  problem = body();
  return problem.empty() ? nullptr : problem.c_str();
} catch (const std::exception& error) {
  problem = error.what();
  return problem.c_str();
}

const char* serve_calls(int64_t most_bytes, GrpcHandler handler, GrpcServer** server) {
  return caught([&]() -> std::string {
    auto started = std::make_unique<CarryingServer>(most_bytes, handler);
    if (!started->runs()) return "gRPC cannot start a server";
    *server = started.release();
    return {};
  });
}

const char* connect_to(const char* address, GrpcClient** client) {
  return caught([&]() -> std::string {
    *client = std::make_unique<CarryingClient>(address).release();
    return {};
  });
}

}  // namespace
}  // namespace hctr::serve

extern "C" __attribute__((visibility("default"))) const hctr::serve::GrpcPlugin* hctr_grpc_plugin() {
  static const std::string about = "gRPC " + grpc::Version();
  static const hctr::serve::GrpcPlugin plugin = {hctr::serve::kGrpcPlugin, about.c_str(), hctr::serve::serve_calls,
                                                 hctr::serve::connect_to};
  return &plugin;
}
