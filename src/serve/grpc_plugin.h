// The interface of the gRPC plug-in. It passes only plain types: no exceptions, no containers.
//
// The plug-in (src/plugins/grpc) is a separate library: without gRPC, everything else builds and runs. The plug-in
// transports serialized messages. grpc_api.h parses them, according to src/plugins/grpc/inference.proto.
#pragma once

#include <cstdint>

namespace hctr::serve {

struct GrpcBytes {
  const char* data = nullptr;
  int64_t size = 0;
};

/// A call of a client that is not answered yet. Owns the bytes of its request. Thread-safe.
class GrpcCall {
 public:
  virtual ~GrpcCall() = default;
  virtual bool cancelled() const = 0;
  /// Answers the call with a gRPC status and its message. Called exactly once, and no other member afterwards.
  virtual void answer(int status, const char* message, GrpcBytes response) = 0;
};

/// Handles a call. `method`: "/inference.GRPCInferenceService/ModelInfer" or another method. Threads of the plug-in
/// call the handler, which must not block. The handler must delete `call`; `request` is valid until then. `left_us`:
/// time left until the client's deadline; negative: no deadline.
struct GrpcHandler {
  void* self;
  void (*call)(void* self, const char* method, GrpcBytes request, int64_t left_us, GrpcCall* call);
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;  // cancels running calls
  /// Serves a connection. `socket`: connected and non-blocking; the server closes it.
  virtual void take_connection(int socket) = 0;
  /// Accepts no more calls, and waits at most `ms` for running calls. take_connection() must not be called any more.
  virtual void drain(int64_t ms) = 0;
};

/// A connection to a server. Thread-safe.
class GrpcClient {
 public:
  virtual ~GrpcClient() = default;
  /// Calls a method and waits for its answer. take(self, ...) receives the status, its message and the response.
  virtual void call(const char* method, GrpcBytes request, int64_t timeout_us, void* self,
                    void (*take)(void* self, int status, const char* message, GrpcBytes response)) = 0;
};

struct GrpcPlugin {
  int64_t version;    ///< kGrpcPlugin as it was when the plug-in was built
  const char* about;  ///< library and version, such as "gRPC 1.51.1"
  /// These functions return an error text, or null. The text is valid until the same thread calls the plug-in again.
  /// `most_bytes`: maximum size of a message.
  const char* (*serve)(int64_t most_bytes, GrpcHandler, GrpcServer** server);
  const char* (*connect)(const char* address, GrpcClient** client);
};

inline constexpr int64_t kGrpcPlugin = 3;
inline constexpr const char* kGrpcPluginFile = "libhuge_ctr_grpc.so";
/// The plug-in's only exported symbol: const GrpcPlugin* ().
inline constexpr const char* kGrpcPluginEntry = "hctr_grpc_plugin";

}  // namespace hctr::serve
