// Evaluation, prediction and export through the C interface.
#include <string>
#include <vector>

#include "capi/call.h"
#include "capi/use_results.h"
#include "core/base/expect.h"
#include "hctr/use_model.h"
#include "use/scored_sample.h"

namespace hctr::capi {
namespace {

template <class Options>
Options use_options(const hctr_use_options* given) {
  const hctr_use_options from = read_struct(given, "hctr_use_options");
  expect_given(from.model, "hctr_use_options: model");
  Options to;
  to.model = from.model;
  if (from.config) to.config = from.config;
  if (from.data) to.data = from.data;
  if (from.stop) to.stop = &from.stop->value;
  set_job(from, "hctr_use_options", to);
  return to;
}

}  // namespace
}  // namespace hctr::capi

hctr_status hctr_stop_create(hctr_stop** stop) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(stop, "hctr_stop_create(): the pointer to the handle");
    *stop = new hctr_stop;
  });
}

void hctr_stop_set(hctr_stop* stop) {
  constexpr int kInterrupt = 2;  // SIGINT's number
  if (stop) stop->value = kInterrupt;
}

void hctr_stop_destroy(hctr_stop* stop) { delete stop; }

hctr_status hctr_evaluate(const hctr_use_options* options, hctr_metric metric, void* user, hctr_use_summary* summary) {
  return hctr::capi::call([&] {
    const auto result = hctr::capi::whole(hctr::evaluate(hctr::capi::use_options<hctr::ModelOptions>(options)));
    hctr::capi::pass_metrics(result.metrics, metric, user);
    hctr::capi::note_use(result, result.samples, summary);
  });
}

hctr_status hctr_predict(const hctr_use_options* options, const char* out, const char* const* keep, size_t keep_count,
                         hctr_use_summary* summary) {
  return hctr::capi::call([&] {
    auto of = hctr::capi::use_options<hctr::PredictOptions>(options);
    hctr::capi::expect_given(out, "hctr_predict(): the file");
    of.out = out;
    for (size_t i = 0; i < keep_count; ++i) of.keep.emplace_back(keep[i]);
    const auto result = hctr::capi::whole(hctr::predict(of));
    hctr::capi::note_use(result, result.rows, summary);
  });
}

hctr_status hctr_export(const hctr_use_options* options, int32_t format, const char* out, int64_t rows, hctr_file file,
                        void* user) {
  return hctr::capi::call([&] {
    auto of = hctr::capi::use_options<hctr::ExportOptions>(options);
    hctr::capi::expect_given(out, "hctr_export(): the folder");
    if (format < HCTR_ONNX || format > HCTR_PARQUET)
      throw hctr::Error(hctr::Kind::usage, hctr::cat("hctr_export(): unknown format ", format));
    of.format = static_cast<hctr::ExportFormat>(format);
    of.out = out;
    of.rows = rows;
    for (const auto& path : hctr::capi::whole(hctr::export_model(of)).files)
      if (file) file(user, path.c_str());
  });
}

hctr_status hctr_feature_importance(const hctr_use_options* options, int64_t rows, hctr_importance feature, void* user,
                                    double* auc) {
  return hctr::capi::call([&] {
    auto of = hctr::capi::use_options<hctr::SampleOptions>(options);
    of.rows = rows;
    of.importance = true;
    const hctr::ScoredSample sample = hctr::capi::whole(hctr::score_sample(of));
    if (auc) *auc = sample.auc;
    for (const hctr::FeatureImportance& one : sample.importance)
      if (feature) feature(user, one.feature.c_str(), one.auc, one.scores_moved);
  });
}
