#include "serve/metrics_page.h"

#include <functional>
#include <optional>
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
  std::vector<UnseenKeys::Slot> slots;
  std::optional<StoreCacheStatistics> cache;
};

/// Rows and updates of a store: gauges and counters by model, and by table and level.
std::string store_metrics(const ServedStore& store) {
  std::string page;
  const auto head = [&](const char* name, const char* type, const char* help) {
    page += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  };
  const std::vector<StoreModelStatistics> models = store.models();
  const auto of_models = [&](const char* name, const char* type, const char* help, const auto& value) {
    head(name, type, help);
    for (const StoreModelStatistics& one : models)
      page += cat(name, "{model=\"", escaped_label(one.model), "\",version=\"", escaped_label(one.version), "\"} ",
                  value(one), "\n");
  };
  of_models("hctr_store_active", "gauge", "1 for the version whose rows are served",
            [](const StoreModelStatistics& one) { return one.active ? 1 : 0; });
  of_models("hctr_store_iteration", "gauge", "Training iteration of the rows; -1: unknown",
            [](const StoreModelStatistics& one) { return one.iteration; });
  of_models("hctr_store_update_age_seconds", "gauge", "Seconds since the newest applied delta was written; -1: none",
            [](const StoreModelStatistics& one) { return one.age_seconds; });
  of_models("hctr_store_updated_rows", "counter", "Rows that deltas have changed or added",
            [](const StoreModelStatistics& one) { return one.updated_rows; });
  of_models("hctr_store_removed_rows", "counter", "Rows that deltas have removed",
            [](const StoreModelStatistics& one) { return one.removed_rows; });

  const std::vector<StoreTableStatistics> tables = store.levels();
  const auto of_levels = [&](const char* name, const char* type, const char* help, const auto& value) {
    head(name, type, help);
    for (const StoreTableStatistics& table : tables)
      for (const auto& level : table.levels)
        page += cat(name, "{model=\"", escaped_label(table.model), "\",version=\"", escaped_label(table.version),
                    "\",table=\"", escaped_label(table.table), "\",level=\"", escaped_label(level.name), "\"} ",
                    value(level), "\n");
  };
  of_levels("hctr_store_level_rows", "gauge", "Rows of a table in a level", [](const auto& one) { return one.rows; });
  of_levels("hctr_store_level_bytes", "gauge", "Bytes of a table in a level",
            [](const auto& one) { return one.bytes; });
  of_levels("hctr_store_level_keys", "counter", "Keys looked up in a level", [](const auto& one) { return one.asked; });
  of_levels("hctr_store_level_hits", "counter", "Keys found in a level", [](const auto& one) { return one.found; });
  of_levels("hctr_store_level_failed", "counter", "Keys for which a level failed",
            [](const auto& one) { return one.failed; });

  const std::vector<StoreFollower::Stream> streams = store.streams();
  const auto of_streams = [&](const char* name, const char* type, const char* help, const auto& value) {
    if (!streams.empty()) head(name, type, help);
    for (const StoreFollower::Stream& one : streams)
      page += cat(name, "{model=\"", escaped_label(one.model), "\"} ", value(one.statistics), "\n");
  };
  of_streams("hctr_stream_deltas", "counter", "Deltas applied from the topic",
             [](const auto& one) { return one.applied; });
  of_streams("hctr_stream_lag_messages", "gauge", "Messages of the topic that are not read yet; -1: unknown",
             [](const auto& one) { return one.stream.behind; });
  of_streams("hctr_stream_given_up", "counter", "Deltas that could not be applied",
             [](const auto& one) { return one.stream.given_up; });
  of_streams("hctr_stream_stopped", "gauge", "1 once an error has ended the updates",
             [](const auto& one) { return one.error.empty() ? 0 : 1; });
  return page;
}

/// Requests, samples and times of each version.
std::string request_metrics(const std::vector<VersionView>& views) {
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
      "# HELP nv_inference_request_duration_us Latency of requests, from arrival to answer\n"
      "# TYPE nv_inference_request_duration_us counter\n";
  for (const VersionView& one : views)
    page += cat("nv_inference_request_duration_us{", one.labels, "} ", one.view.success.ns / 1000, "\n");
  time("nv_inference_queue_duration_us", "Latency of requests in the queue", &StatisticsView::queue);
  time("nv_inference_compute_input_duration_us", "Latency of reading and joining the inputs of requests",
       &StatisticsView::input);
  time("nv_inference_compute_infer_duration_us", "Latency of scoring requests", &StatisticsView::infer);
  time("nv_inference_compute_output_duration_us", "Latency of preparing the outputs of requests",
       &StatisticsView::output);
  return page;
}

/// Sampled keys of each slot, and those without a row.
std::string slot_metrics(const std::vector<VersionView>& views) {
  std::string page;
  const auto of_slots = [&](const char* name, const char* help, int64_t UnseenKeys::Slot::*value) {
    page += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " counter\n");
    for (const VersionView& one : views)
      for (const UnseenKeys::Slot& slot : one.slots)
        page += cat(name, "{", one.labels, ",slot=\"", escaped_label(slot.name), "\"} ", slot.*value, "\n");
  };
  of_slots("hctr_sampled_keys", "Keys in the sampled requests, by slot; one request in 16 is sampled",
           &UnseenKeys::Slot::keys);
  of_slots("hctr_unseen_keys", "Sampled keys that have no row in the tables", &UnseenKeys::Slot::unseen);
  return page;
}

/// GPU caches of the versions that have one.
std::string cache_metrics(const std::vector<VersionView>& views) {
  std::string page;
  const auto of_caches = [&](const char* name, const char* type, const char* help,
                             int64_t StoreCacheStatistics::*value) {
    std::string lines;
    for (const VersionView& one : views)
      if (one.cache) lines += cat(name, "{", one.labels, "} ", (*one.cache).*value, "\n");
    if (!lines.empty()) page += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", lines);
  };
  of_caches("hctr_gpu_cache_bytes", "gauge", "GPU memory of the cache of the model's tables",
            &StoreCacheStatistics::bytes);
  of_caches("hctr_gpu_cache_rows", "gauge", "Rows in the cache", &StoreCacheStatistics::keys);
  of_caches("hctr_gpu_cache_keys", "counter", "Keys looked up in the cache", &StoreCacheStatistics::asked);
  of_caches("hctr_gpu_cache_misses", "counter", "Keys that the cache lacked", &StoreCacheStatistics::misses);
  of_caches("hctr_gpu_cache_defaults", "counter", "Keys that received the default row",
            &StoreCacheStatistics::defaults);
  of_caches("hctr_gpu_cache_updated_rows", "counter", "Rows that updates changed in the cache",
            &StoreCacheStatistics::updated);
  return page;
}

}  // namespace

std::string metrics_page(const ServeCore& core, int64_t connections) {
  std::vector<VersionView> views;
  for (const std::string& model : core.repository().models())
    for (const auto& [number, version] : core.repository().versions(model))
      views.push_back({cat("model=\"", escaped_label(model), "\",version=\"", number, "\""),
                       version->statistics().view(), version->waiting(), version->unseen_keys(),
                       version->model().cache_statistics()});
  std::string page = request_metrics(views) + slot_metrics(views) + cache_metrics(views);
  page += cat("# HELP hctr_http_connections Open HTTP connections\n# TYPE hctr_http_connections gauge\n",
              "hctr_http_connections ", connections, "\n");
  if (core.store()) page += store_metrics(*core.store());
  return page;
}

}  // namespace hctr::serve
