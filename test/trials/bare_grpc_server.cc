// bare_grpc_server PORT FOLDER: a gRPC server that only reads a message and answers with constant bytes, the content of
// FOLDER/<method>. compare_serving.py compares huge_ctr serve with it: the difference is the cost of everything but
// gRPC.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace {

using Answers = std::map<std::string, std::string>;  // by the name of the method, without that of the service

class ConstantCall : public grpc::ServerGenericBidiReactor {
 public:
  ConstantCall(const Answers& answers, const std::string& method) {
    const auto found = answers.find(method.substr(method.rfind('/') + 1));
    if (found == answers.end()) {
      Finish({grpc::StatusCode::UNIMPLEMENTED, method});
      return;
    }
    const grpc::Slice slice(found->second);
    response_ = grpc::ByteBuffer(&slice, 1);
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    ok ? StartWriteAndFinish(&response_, {}, grpc::Status::OK)
       : Finish({grpc::StatusCode::INVALID_ARGUMENT, "no message"});
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer request_, response_;
};

class ConstantService : public grpc::CallbackGenericService {
 public:
  explicit ConstantService(const Answers& answers) : answers_(answers) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new ConstantCall(answers_, context->method());
  }

 private:
  const Answers& answers_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bare_grpc_server PORT FOLDER\n");
    return 2;
  }
  Answers answers;
  for (const auto& file : std::filesystem::directory_iterator(argv[2])) {
    std::ifstream stream(file.path(), std::ios::binary);
    answers[file.path().filename()] = {std::istreambuf_iterator<char>(stream), {}};
  }
  ConstantService service(answers);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(std::string("127.0.0.1:") + argv[1], grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  const auto server = builder.BuildAndStart();
  if (port == 0) {
    std::fprintf(stderr, "port %s is in use\n", argv[1]);
    return 1;
  }
  std::printf("ready\n");
  std::fflush(stdout);
  server->Wait();
}
