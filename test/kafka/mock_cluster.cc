// Runs librdkafka's mock cluster in its own process for tests: in memory, on loopback, until stdin closes.
//
// usage: kafka_mock_cluster BROKERS [TOPIC:PARTITIONS]...
// The first line on stdout is the list of brokers. Each line on stdin is a command; the response on stdout is "ok":
//   topic NAME PARTITIONS | down BROKER | up BROKER | delay BROKER MS | fail_produce COUNT | fail_fetch COUNT
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <iostream>
#include <sstream>
#include <string>

namespace {

constexpr int16_t kProduce = 0, kFetch = 1;  // API keys of the Kafka protocol

bool obey(rd_kafka_mock_cluster_t* cluster, const std::string& line) {
  std::istringstream words(line);
  std::string what, name;
  int number = 0, value = 0;
  words >> what;
  if (what == "topic" && words >> name >> number) return !rd_kafka_mock_topic_create(cluster, name.c_str(), number, 1);
  if (!(words >> number)) return false;
  if (what == "down") return !rd_kafka_mock_broker_set_down(cluster, number);
  if (what == "up") return !rd_kafka_mock_broker_set_up(cluster, number);
  if (what == "delay" && words >> value) return !rd_kafka_mock_broker_set_rtt(cluster, number, value);
  const bool produce = what == "fail_produce";
  if (!produce && what != "fail_fetch") return false;
  for (int i = 0; i < number; ++i)
    rd_kafka_mock_push_request_errors(
        cluster, produce ? kProduce : kFetch, 1,
        produce ? RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION : RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  char why[512] = "";
  rd_kafka_t* const client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  if (!client || count < 2) return 1;
  rd_kafka_mock_cluster_t* const cluster = rd_kafka_mock_cluster_new(client, std::stoi(arguments[1]));
  if (!cluster) return 1;
  for (int i = 2; i < count; ++i) {
    const std::string topic = arguments[i];
    const size_t colon = topic.rfind(':');
    if (!obey(cluster, "topic " + topic.substr(0, colon) + " " + topic.substr(colon + 1))) return 1;
  }
  std::cout << rd_kafka_mock_cluster_bootstraps(cluster) << std::endl;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << (obey(cluster, line) ? "ok" : "error") << std::endl;
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(client);
}
