// huge_ctr serve: models and versions are loaded and unloaded while clients send requests.
#include <csignal>

#include "serve_fixture.h"

namespace hctr::test {
namespace {

class ServedVersions : public ServeTest {
 protected:
  void train_two() {
    train(config_, {"[0]"}, "one");
    train(with_change(config_, "\"seed\": 7", "\"seed\": 8"), {"[0]"}, "two");
  }
};

TEST_F(ServedVersions, AreSwappedWithoutAFailedRequestOrAMixedAnswer) {
  train_two();
  const SampleArrays samples = samples_of("one.json");
  const std::map<std::string, std::vector<float>> expected = {{"1", predicted("one-run")}, {"2", predicted("two-run")}};
  fs::create_directories("models/ctr");
  fs::create_directory_symlink(fs::absolute("one-run"), "models/ctr/1");
  write_file("models/ctr/config.pbtxt", "name: \"ctr\" dynamic_batching { max_queue_delay_microseconds: 50 }");
  serve::ServeOptions options = options_for({"models"});
  options.control = serve::ModelControl::on_request;
  options.load = {"*"};
  const serve::Service service(options);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::mutex mutex;
  std::map<std::string, int> by_version;
  std::vector<std::thread> clients;
  for (unsigned c = 0; c < 3; ++c)
    clients.emplace_back([&, c] {
      HttpClient client(service.http_port());
      std::mt19937 random(c);
      while (!stop) {
        const size_t first = random() % 490;
        const HttpAnswer answer = client.post("/v2/models/ctr/infer", packed_request(samples, first, 10));
        if (answer.status != 200) {
          ++wrong;
          continue;
        }
        const std::string version = *Json::parse(answer.body, "answer").find("model_version")->string();
        const std::vector<float>& right = expected.at(version);
        const auto begin = right.begin() + static_cast<std::ptrdiff_t>(first);
        if (scores_in(answer.body) != std::vector<float>(begin, begin + 10)) ++wrong;
        const std::lock_guard lock(mutex);
        ++by_version[version];
      }
    });
  HttpClient control(service.http_port());
  for (int swap = 0; swap < 10; ++swap) {
    if (swap % 2 == 0)
      fs::create_directory_symlink(fs::absolute("two-run"), "models/ctr/2");
    else
      fs::remove("models/ctr/2");
    const HttpAnswer loaded = control.post("/v2/repository/models/ctr/load", "");
    EXPECT_EQ(loaded.status, 200) << loaded.body;
    // Waits until this version has answered before the next swap.
    const std::string version = swap % 2 == 0 ? "2" : "1";
    const auto answers = [&] {
      const std::lock_guard lock(mutex);
      return by_version[version];
    };
    const int before = answers();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (answers() < before + 3 && wrong == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(by_version["1"], 3);
  EXPECT_GE(by_version["2"], 3);
}

TEST_F(ServedVersions, StayWhereTheNextOneFailsToLoad) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  fs::create_directories("models/ctr/2");
  fs::create_directories("models/other/1");
  fs::create_directory_symlink(fs::absolute("one-run"), "models/ctr/1");
  write_file("models/ctr/config.pbtxt", "version_policy { specific { versions: 1 } }");
  serve::ServeOptions options = options_for({"models"});
  options.control = serve::ModelControl::on_request;
  options.load = {"ctr"};
  const serve::Service service(options);
  HttpClient client(service.http_port());
  const std::string request = packed_request(samples, 0, 1);
  EXPECT_EQ(client.post("/v2/models/ctr/infer", request).status, 200);
  write_file("models/ctr/config.pbtxt", "version_policy { all { } }");
  const HttpAnswer broken = client.post("/v2/repository/models/ctr/load", "");
  EXPECT_NE(broken.status, 200);
  EXPECT_NE(error_in(broken).find("failed to load 'ctr', version 2: "), std::string::npos) << broken.body;
  EXPECT_EQ(client.post("/v2/models/ctr/infer", request).status, 200);
  EXPECT_EQ(client.post("/v2/repository/index", R"({"ready":true})").body,
            R"([{"name":"ctr","version":"1","state":"READY"}])");
  EXPECT_EQ(error_in(client.post("/v2/repository/models/zz/load", "")),
            "failed to load 'zz': no model of this name is in the repository");
  EXPECT_EQ(client.post("/v2/repository/models/ctr/unload", "").status, 200);
  EXPECT_EQ(client.get("/v2/models/ctr/ready").status, 400);
  EXPECT_EQ(error_in(client.post("/v2/models/ctr/infer", request)),
            "Request for unknown model: 'ctr' has no available versions");
  const std::string index = client.post("/v2/repository/index", "").body;
  EXPECT_NE(index.find(R"({"name":"ctr","version":"1","state":"UNAVAILABLE","reason":"unloaded"})"), std::string::npos)
      << index;
  EXPECT_NE(index.find(R"({"name":"other"})"), std::string::npos) << index;
  const std::string config = R"({"parameters":{"config":"{\"version_policy\":{\"specific\":{\"versions\":[1]}}}"}})";
  EXPECT_EQ(client.post("/v2/repository/models/ctr/load", config).status, 200);
  EXPECT_EQ(client.get("/v2/models/ctr/ready").status, 200);
  EXPECT_EQ(client.get("/v2/health/ready").status, 200);
}

TEST_F(ServedVersions, FollowTheFilesWherePolled) {
  train_two();
  const SampleArrays samples = samples_of("one.json");
  const std::vector<float> one = predicted("one-run"), two = predicted("two-run");
  serve::ServeOptions options = options_for({"ctr=current"});
  options.control = serve::ModelControl::poll;
  options.poll_time = std::chrono::milliseconds(20);
  fs::create_directory_symlink("one-run", "current");
  const serve::Service service(options);
  HttpClient client(service.http_port());
  const std::string request = packed_request(samples, 0, 20);
  EXPECT_EQ(scores_in(client.post("/v2/models/ctr/infer", request).body),
            std::vector<float>(one.begin(), one.begin() + 20));
  fs::create_directory_symlink("two-run", "next");
  fs::rename("next", "current");
  const std::vector<float> wanted(two.begin(), two.begin() + 20);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::vector<float> got;
  while (got != wanted && std::chrono::steady_clock::now() < until)
    got = scores_in(client.post("/v2/models/ctr/infer", request).body);
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(client.post("/v2/repository/models/ctr/load", "").status, 400) << "the files decide";
}

/// The short version of test/trials/serve_swaps.py. Also: the index does not list versions that were removed.
TEST_F(ServedVersions, LeaveNoMemoryThreadsOrDescriptorsBehind) {
  train_two();
  const SampleArrays samples = samples_of("one.json");
  fs::create_directories("models/ctr");
  fs::create_directory_symlink(fs::absolute("one-run"), "models/ctr/1");
  const Started server = start_program(
      "huge_ctr",
      {"serve", "models", "--model-control", "explicit", "--load-model", "ctr", "--http-port", "0", "--grpc-port", "-1",
       "--metrics-port", "-1", "--device", "cpu", "--threads", "1", "--instances", "2"},
      folder_.path(), {}, "server");
  wait_for_text(server.err, "\nready\n");
  const std::string log = read_file(server.err);
  const int port = std::atoi(log.c_str() + log.find("127.0.0.1:") + 10);
  const fs::path process = cat("/proc/", server.process);
  const auto count = [&](const char* part) {
    return std::distance(fs::directory_iterator(process / part), fs::directory_iterator{});
  };
  const auto resident_kib = [&] {
    const std::string status = read_file(process / "status");
    return std::atoll(status.c_str() + status.find("VmRSS:") + 6);
  };
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0, answered = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 2; ++c)
    clients.emplace_back([&] {
      HttpClient client(port);
      while (!stop)
        client.post("/v2/models/ctr/infer", packed_request(samples, 0, 5)).status == 200 ? ++answered : ++failed;
    });
  HttpClient control(port);
  const auto swap_to = [&](int version) {
    fs::create_directory_symlink(fs::absolute(version % 2 == 0 ? "two-run" : "one-run"), cat("models/ctr/", version));
    EXPECT_EQ(control.post("/v2/repository/models/ctr/load", "").status, 200);
    fs::remove(cat("models/ctr/", version - 1));
  };
  int version = 1;
  while (version < 11) swap_to(++version);
  const auto threads = count("task"), descriptors = count("fd");
  const int64_t kib = resident_kib();
  while (version < 31) swap_to(++version);
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_GE(answered, 20);
  EXPECT_EQ(control.post("/v2/repository/models/ctr/load", "").status, 200);
  EXPECT_EQ(control.post("/v2/repository/index", "").body, R"([{"name":"ctr","version":"31","state":"READY"}])");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (count("task") > threads && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_LE(count("task"), threads);
  EXPECT_LE(count("fd"), descriptors);
  if (!kSanitized) {
    EXPECT_LE(resident_kib(), kib + 8192);
  }
  ::kill(server.process, SIGTERM);
  EXPECT_EQ(finish_program(server).exit_code, 0);
}

TEST_F(ServedVersions, AreVerifiedAgainstPredictByTheProgram) {
  train(with_batch_norm(config_), {"[0]"}, "one");
  const Outcome outcome = run_program(
      "huge_ctr", {"serve", "ctr=one-run", "--verify", "--device", "cpu", "--threads", "1"}, folder_.path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("model 'ctr': 500 samples in "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("all scores equal the scores of predict bit for bit"), std::string::npos) << outcome.out;
}

TEST_F(ServedVersions, AnswerWhatTheyHaveTakenWhenTheProgramIsTold) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  const Started server = start_program("huge_ctr",
                                       {"serve", "ctr=one-run", "--http-port", "0", "--grpc-port", "-1",
                                        "--metrics-port", "-1", "--device", "cpu", "--threads", "1"},
                                       folder_.path(), {}, "server");
  wait_for_text(server.err, "\nready\n");
  const std::string log = read_file(server.err);
  const int port = std::atoi(log.c_str() + log.find("127.0.0.1:") + 10);
  std::atomic<int> answered = 0, broken = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c)
    clients.emplace_back([&] {
      HttpClient client(port);
      for (;;) {
        if (!client.send(cat("POST /v2/models/ctr/infer HTTP/1.1\r\nContent-Length: ",
                             packed_request(samples, 0, 5).size(), "\r\n\r\n", packed_request(samples, 0, 5))))
          return;
        const HttpAnswer answer = client.receive();
        if (answer.status == 0) return;  // the server closed the connection between two requests
        answer.status == 200 && scores_in(answer.body).size() == 5 ? ++answered : ++broken;
        if (answer.headers.contains("connection")) return;
      }
    });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (answered < 30 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ::kill(server.process, SIGTERM);
  const Outcome outcome = finish_program(server);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GE(answered, 30);
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace hctr::test
