// The interface of the gRPC plug-in. Only plain types cross it: no exceptions, no containers.
//
// The plug-in (src/plugins/grpc) is a library of its own: without gRPC everything else builds and runs. It carries the
// bytes of messages; what they mean is known here (grpc_api.h), in the words of src/plugins/grpc/inference.proto.
#pragma once

#include <cstdint>

namespace hctr::serve {

struct GrpcBytes {
  const char* data = nullptr;
  int64_t size = 0;
};

/// A call of a client, until its answer. Any thread.
class GrpcCall {
 public:
  virtual ~GrpcCall() = default;
  virtual bool cancelled() const = 0;
  /// Answers; `status` and its message are those of gRPC. Called once, the last.
  virtual void answer(int status, const char* message, GrpcBytes response) = 0;
};

/// Takes a call whose method is "/inference.GRPCInferenceService/ModelInfer", or another one. Called by threads of the
/// plug-in; must not block. `left_us`: until the client's deadline; negative: it has none.
struct GrpcHandler {
  void* self;
  void (*call)(void* self, const char* method, GrpcBytes request, int64_t left_us, GrpcCall* call);
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;  // calls are cancelled
  virtual int port() const = 0;
  /// Takes no more calls, and waits for those that run for at most so long.
  virtual void drain(int64_t ms) = 0;
};

/// A connection to a server. Any thread.
class GrpcClient {
 public:
  virtual ~GrpcClient() = default;
  /// Calls and waits. take(self, ...) gets the status, its message and the bytes of the answer.
  virtual void call(const char* method, GrpcBytes request, int64_t timeout_us, void* self,
                    void (*take)(void* self, int status, const char* message, GrpcBytes response)) = 0;
};

struct GrpcPlugin {
  int64_t version;    ///< kGrpcPlugin of the program that it was built with
  const char* about;  ///< "gRPC 1.51.1"
  /// Functions return what went wrong, or null. The text lives until the same thread calls the plug-in again. Messages
  /// have up to `most_bytes`.
  const char* (*serve)(const char* address, int port, int64_t most_bytes, GrpcHandler, GrpcServer** server);
  const char* (*connect)(const char* address, GrpcClient** client);
};

inline constexpr int64_t kGrpcPlugin = 1;
inline constexpr const char* kGrpcPluginFile = "libhuge_ctr_grpc.so";
/// The plug-in's one symbol: const GrpcPlugin* ().
inline constexpr const char* kGrpcPluginEntry = "hctr_grpc_plugin";

}  // namespace hctr::serve
