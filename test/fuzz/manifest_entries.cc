// Fuzz entries for manifests. Each manifest gets a correct checksum, so that parsing continues after the check of the
// checksum.
#include "config/checked_json.h"
#include "formats/checkpoint/manifest.h"
#include "formats/model/model_manifest.h"
#include "fuzz/model_entry_tools.h"
#include "hctr/formats.h"
#include "infer/model_encoding.h"
#include "infer/saved_model.h"
#include "train/resume.h"

namespace hctr::fuzz {
namespace {

std::string signed_text(const Json& json) {
  const bool has_members = json.object() && json.object()->size() > 0;
  return with_checksum(has_members ? json : Json(Json::Object{{"schema", 1}}));
}

void write_signed(const std::string& name, const Json& json) {
  fs::create_directories((model_folder().path() / name).parent_path());
  const std::string text = signed_text(json);
  model_folder().write(name, Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

/// Invalid data must throw one of these kinds of Error, no other exception.
template <class Body>
void refuse(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    expect(error.kind() == Kind::data || error.kind() == Kind::io || error.kind() == Kind::config);
  }
}

const Config& config_of_manifests() {
  static const Config config = [] {
    Config of = fuzzed_model();
    of.solver.dense_model_file = (model_folder().path() / "m_dense_7.model").string();
    return of;
  }();
  return config;
}

}  // namespace

void checkpoint_manifest(Bytes bytes) {
  const auto [own, base] = split_at_zero(bytes);
  Json json = manifest_json(own);
  if (!base.empty()) {
    const Json whole = manifest_json(base);
    write_signed("iteration_000001/manifest.json", whole);
    const Json* named = json.find("base");
    refuse([&] {
      Manifest of = read_manifest(model_folder().path() / "iteration_000001");
      if (!named || !named->object()) return;
      Json right = *named;
      right.set("folder", "iteration_000001");
      right.set("crc32", crc_text(of.files_crc()));
      json.set("base", right);
    });
  }
  write_signed("iteration_000002/manifest.json", json);
  const fs::path folder = model_folder().path() / "iteration_000002";
  refuse([&] {
    ResumePoint point{.folder = folder, .manifest = read_manifest(folder), .progress = {}};
    point.progress = run_progress(point.manifest.progress);
    refuse([&] { verify_files(folder, point.manifest); });
    point.run();
    point.run_dir();
    point.exact_for(config_of_manifests(), 1);
    point.finished_for(config_of_manifests());
    refuse([&] { statistics_of(point.manifest); });
    refuse([&] { expect_same_data(point, Json(Json::Object{}), config_of_manifests()); });
    expect_same_run(point, config_of_manifests(), Log::silent());
  });
}

void model_manifest(Bytes bytes) {
  const Json json = manifest_json(bytes);
  write_signed(formats::model_manifest_name("m", "7"), json);
  write_signed(formats::model_manifest_name("m_delta_7/", "7"), json);
  const fs::path dense = model_folder().path() / "m_dense_7.model";
  refuse([&] {
    const auto manifest = manifest_of(dense);
    expect(manifest.has_value());
    manifest->table_of("0_sparse_7.model");
    manifest->verify("_dense_7.model");
  });
  refuse([&] { expect_encoding_of_start(config_of_manifests(), EncodingChoice::same, Log::silent()); });
  refuse([&] { delta_manifest(model_folder().path() / "m_delta_7"); });
}

}  // namespace hctr::fuzz
