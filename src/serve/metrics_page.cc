#include "serve/metrics_page.h"

#include <functional>
#include <string_view>
#include <vector>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

std::string escaped_label(std::string_view value) {
  std::string out;
  for (const char c : value)
    if (c == '\\' || c == '"')
      out += cat('\\', c);
    else
      out += c == '\n' ? std::string("\\n") : std::string(1, c);
  return out;
}

struct VersionView {
  std::string labels;
  StatisticsView view;
  int64_t waiting;
};

}  // namespace

std::string metrics_page(const ServeCore& core, int64_t connections) {
  std::vector<VersionView> views;
  for (const std::string& model : core.repository().models())
    for (const auto& [number, version] : core.repository().versions(model))
      views.push_back({cat("model=\"", escaped_label(model), "\",version=\"", number, "\""),
                       version->statistics().view(), version->waiting()});
  std::string page;
  const auto metric = [&](const char* name, const char* type, const char* help,
                          const std::function<int64_t(const VersionView&)>& value) {
    page += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
    for (const VersionView& view : views) page += cat(name, "{", view.labels, "} ", value(view), "\n");
  };
  const auto time = [&](const char* name, const char* help, CountAndTime StatisticsView::*stage) {
    metric(name, "counter", help, [=](const VersionView& one) { return (one.view.*stage).ns / 1000; });
  };
  metric("nv_inference_request_success", "counter", "Number of successful inference requests",
         [](const VersionView& one) { return one.view.success.count; });
  page +=
      "# HELP nv_inference_request_failure Number of failed inference requests\n"
      "# TYPE nv_inference_request_failure counter\n";
  for (const VersionView& one : views)
    for (const std::string_view reason : {"REJECTED", "CANCELED", "BACKEND", "OTHER"}) {
      int64_t count = 0;
      for (size_t code = 0; code < one.view.failures.size(); ++code)
        if (code > 0 && reason_word(static_cast<Code>(code)) == reason) count += one.view.failures[code];
      page += cat("nv_inference_request_failure{", one.labels, ",reason=\"", reason, "\"} ", count, "\n");
    }
  metric("nv_inference_count", "counter", "Number of scored samples",
         [](const VersionView& one) { return one.view.inferences; });
  metric("nv_inference_exec_count", "counter", "Number of scored batches",
         [](const VersionView& one) { return one.view.executions; });
  metric("nv_inference_pending_request_count", "gauge", "Number of requests not answered yet",
         [](const VersionView& one) { return one.view.pending; });
  metric("hctr_queued_request_count", "gauge", "Number of requests waiting for a batch",
         [](const VersionView& one) { return one.waiting; });
  page +=
      "# HELP nv_inference_request_duration_us Time of requests, from arrival to answer\n"
      "# TYPE nv_inference_request_duration_us counter\n";
  for (const VersionView& one : views)
    page += cat("nv_inference_request_duration_us{", one.labels, "} ", one.view.success.ns / 1000, "\n");
  time("nv_inference_queue_duration_us", "Time of requests in the queue", &StatisticsView::queue);
  time("nv_inference_compute_input_duration_us", "Time of requests for reading and joining inputs",
       &StatisticsView::input);
  time("nv_inference_compute_infer_duration_us", "Time of requests for scoring", &StatisticsView::infer);
  time("nv_inference_compute_output_duration_us", "Time of requests for outputs", &StatisticsView::output);
  page += cat("# HELP hctr_http_connections Connections of HTTP that are open\n# TYPE hctr_http_connections gauge\n",
              "hctr_http_connections ", connections, "\n");
  return page;
}

}  // namespace hctr::serve
