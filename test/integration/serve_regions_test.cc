// huge_ctr serve: GPU memory of clients (CUDA shared memory).
#include <csignal>
#include <cstdlib>

#include "core/device/copy_bytes.h"
#include "core/device/gpu_ipc.h"
#include "serve/grpc_front.h"
#include "serve/proto_reader.h"
#include "serve/served_parity.h"
#include "serve_fixture.h"
#include "support/base64_of.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

class CudaRegions : public ServeTest {
 protected:
  static std::string registration(const std::string& handle, const std::string& device, const std::string& bytes) {
    return cat(R"({"raw_handle":{"b64":")", base64_of(handle), R"("},"device_id":)", device, R"(,"byte_size":)", bytes,
               "}");
  }
};

TEST_F(CudaRegions, AreRefusedWithAReasonByHttpAndGrpc) {
  train(config_, {"[0]"}, "one");
  const std::string handle(kIpcHandleBytes, 'h'), region = "/v2/cudasharedmemory/region/r/";
  {
    const serve::Service service(options_for({"ctr=one-run"}));
    HttpClient client(service.http_port());
    const HttpAnswer off = client.post(region + "register", registration(handle, "0", "64"));
    EXPECT_EQ(off.status, 400);
    EXPECT_EQ(error_in(off), "CUDA shared memory is off: start the service with --cuda-shared-memory to allow regions");
    EXPECT_EQ(client.get("/v2").body.find("cuda_shared_memory"), std::string::npos);
  }
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.cuda_shared_memory = true;
  const serve::Service service(options);
  HttpClient client(service.http_port());
  const auto refusal = [&](const std::string& body) {
    const HttpAnswer answer = client.post(region + "register", body);
    EXPECT_EQ(answer.status, 400);
    return error_in(answer);
  };
  EXPECT_EQ(refusal(registration(handle.substr(1), "0", "64")),
            "region 'r': the CUDA handle has 63 bytes; expected 64");
  EXPECT_EQ(refusal(registration(handle, "0", "0")), "region 'r': 0 bytes: expected a size above 0 and below 2^48");
  EXPECT_EQ(refusal(registration(handle, "0", "-1")), "region 'r': -1 bytes: expected a size above 0 and below 2^48");
  EXPECT_EQ(refusal(registration(handle, "-1", "64")), "region 'r': GPU -1: expected a number from 0 on");
  const std::string fields =
      "a region needs 'raw_handle', an object with the string 'b64', and the integers 'device_id' and 'byte_size'";
  EXPECT_EQ(refusal(registration(handle, "\"0\"", "64")), fields);
  EXPECT_EQ(refusal(R"({"raw_handle":"aaaa","device_id":0,"byte_size":64})"), fields);
  EXPECT_EQ(refusal("{}"), fields);
  EXPECT_EQ(refusal(R"({"raw_handle":{"b64":"a*"},"device_id":0,"byte_size":64})"),
            "region 'r': 'b64' of 'raw_handle' is not base64");
  const std::string no_gpu = refusal(registration(handle, "999", "64"));
  EXPECT_TRUE(no_gpu.starts_with("region 'r': there is no GPU 999") ||
              no_gpu.starts_with("region 'r': GPU memory of another process cannot be mapped: "))
      << no_gpu;
  // refused, because there is no GPU, or because no process has made this handle
  (void)refusal(registration(handle, "0", "64"));
  if (const GpuSearch gpus = find_gpus(); gpus.count == 0) {
    EXPECT_NE(log().find(cat("clients cannot register CUDA shared memory: ", gpus.why_none)), std::string::npos)
        << log();
  }
  EXPECT_EQ(client.get("/v2/cudasharedmemory/status").body, "[]");
  const HttpAnswer unknown = client.get(region + "status");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(error_in(unknown), "unable to find cuda shared memory region: 'r'");
  EXPECT_EQ(client.post(region + "unregister", "").status, 200);
  EXPECT_EQ(client.post("/v2/cudasharedmemory/unregister", "").status, 200);
  EXPECT_EQ(client.get(region + "register").status, 405);
  EXPECT_EQ(client.get("/v2/cudasharedmemory/nothing").status, 404);

  if (kSanitized || !serve::why_no_grpc().empty()) return;
  const auto grpc = serve::connect_grpc(cat("127.0.0.1:", service.grpc_port()));
  const auto call = [&](const std::string& method, const std::string& request) {
    return serve::call_grpc(*grpc, "/inference.GRPCInferenceService/CudaSharedMemory" + method, request, 60'000'000);
  };
  std::string request;
  serve::append_bytes_field(request, 1, "r");
  EXPECT_EQ(call("Status", request).status, 5);
  EXPECT_EQ(call("Status", "").status, 0);
  serve::append_bytes_field(request, 2, "short");
  serve::append_integer_field(request, 4, 64);
  const serve::GrpcAnswer answer = call("Register", request);
  EXPECT_EQ(answer.status, 3);
  EXPECT_EQ(answer.message, "region 'r': the CUDA handle has 5 bytes; expected 64");
  EXPECT_EQ(call("Unregister", "").status, 0);
  EXPECT_EQ(call("Nothing", "").status, 12);
}

/// The service runs in a second process, because CUDA maps only memory of other processes.
TEST_F(CudaRegions, OfAnotherProcessHoldInputsAndOutputs) {
  HCTR_SKIP_WITHOUT_GPU();
  device_ = "cuda";
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  const Started server = start_program("huge_ctr",
                                       {"serve", "ctr=one-run", "--cuda-shared-memory", "--http-port", "0",
                                        "--grpc-port", "-1", "--metrics-port", "-1", "--device", "cuda"},
                                       folder_.path(), {}, "server");
  wait_for_text(server.err, "\nready");
  const std::string log = read_file(server.err), before = "HTTP: http://127.0.0.1:";
  HttpClient client(std::atoi(log.c_str() + log.find(before) + before.size()));
  const std::string request = packed_request(samples, 0, 20);
  const HttpAnswer in_json = client.post("/v2/models/ctr/infer", request);
  ASSERT_EQ(in_json.status, 200) << in_json.body;

  // the dense input and the output are in one allocation: 320 bytes of values, then 80 bytes of scores
  const Buffer memory(kGpu, 400);
  const StreamRef stream = runtime_of(kGpu).compute_stream();
  copy_bytes(stream, memory.data(), samples.dense.data(), 320);
  stream.synchronize();
  const std::string handle = ipc_handle(kGpu, memory.data()), region = "/v2/cudasharedmemory/region/r/";
  EXPECT_EQ(client.post(region + "register", registration(handle, "0", "1073741824")).status, 400)
      << "more than the allocation";
  const HttpAnswer registered = client.post(region + "register", registration(handle, "0", "400"));
  ASSERT_EQ(registered.status, 200) << registered.body;
  EXPECT_EQ(client.post(region + "register", registration(handle, "0", "400")).status, 400) << "the name is in use";
  EXPECT_EQ(client.get(region + "status").body, R"([{"name":"r","device_id":0,"byte_size":400}])");
  const auto at = [](int64_t offset, int64_t bytes) {
    return cat(R"("parameters":{"shared_memory_region":"r","shared_memory_offset":)", offset,
               R"(,"shared_memory_byte_size":)", bytes, "}");
  };
  const size_t data = request.find(",\"data\":"), end = request.find("]}", data) + 1;
  const auto in_region = [&](int64_t output_at) {
    std::string changed = request;
    changed.replace(data, end - data, "," + at(0, 320));
    return with_change(changed, "{\"inputs\"",
                       cat(R"({"outputs":[{"name":"loss",)", at(output_at, 80), R"(}],"inputs")"));
  };
  const HttpAnswer outside = client.post("/v2/models/ctr/infer", in_region(321));
  EXPECT_EQ(outside.status, 400);
  EXPECT_EQ(error_in(outside), "tensor 'loss': 80 bytes from byte 321 on are outside region 'r', which has 400");
  const HttpAnswer answer = client.post("/v2/models/ctr/infer", in_region(320));
  ASSERT_EQ(answer.status, 200) << answer.body;
  std::vector<float> scores(20);
  copy_bytes(stream, scores.data(), memory.data() + 320, 80);
  stream.synchronize();
  EXPECT_EQ(scores, scores_in(in_json.body));
  EXPECT_EQ(client.post(region + "unregister", "").status, 200);
  EXPECT_EQ(client.post("/v2/models/ctr/infer", in_region(320)).status, 404) << "unregistered";
  ::kill(server.process, SIGTERM);
  const Outcome ended = finish_program(server);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
}

}  // namespace
}  // namespace hctr::test
