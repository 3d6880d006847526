#include "train/run_about.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "core/base/build_info.h"
#include "core/base/host_name.h"
#include "core/base/thread_pool.h"
#include "core/base/wall_time.h"
#include "core/device/device.h"
#include "train/run_folder.h"

namespace hctr {
namespace {

constexpr const char* kUnaskedModels = "unasked_models";

}  // namespace

std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  return std::getline(file, line) ? driver_version_in(line) : "";
}

std::string driver_version_in(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos) return word;
  return line;
}

Json to_json(const DataFingerprint& print) {
  Json json(Json::Object{{"files", print.files}, {"bytes", print.bytes}, {"sizes", static_cast<int64_t>(print.sizes)}});
  std::vector<SlotKeyRule> by_type = print.slot_key_rules;
  std::erase_if(by_type, [](const SlotKeyRule& slot) { return slot.stated && !slot.times; });
  if (!by_type.empty()) json.set("slot_keys", to_json(by_type));
  return json;
}

Json about_start(const TrainOptions& options, const std::string& device, int ranks, int threads) {
  Json command(Json::Array{}), versions(Json::Object{{"huge_ctr", std::string(version())}});
  for (const std::string& word : options.command) command.add(word);
  for (const auto& [name, value] : build_facts()) versions.set(name, value);
  std::error_code no_folder;
  Json start(Json::Object{{"command", std::move(command)},
                          {"folder", fs::current_path(no_folder).string()},
                          {"config", options.config.string()},
                          {"host", host_name()},
                          {"process", static_cast<int64_t>(::getpid())},
                          {"started", utc_text(unix_time())},
                          {"device", device},
                          {"ranks", ranks},
                          {"threads", threads},
                          {"processor", describe(Device{})},
                          {"cores", usable_cores()},
                          {"memory", static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)}});
  if (const std::string driver = driver_version(); !driver.empty()) start.set("driver", driver);
  start.set("versions", std::move(versions));
  return start;
}

Json about_run_file(const std::string& run, const Json& data, const Json& eval_data, const Json& start,
                    const Json* before) {
  Json file(Json::Object{{"schema", kRunSchema}, {"run", run}, {"data", data}});
  if (!eval_data.is_null()) file.set("eval_data", eval_data);
  const Json* starts = before ? before->find("starts") : nullptr;
  Json::Array all = starts && starts->array() ? *starts->array() : Json::Array{};
  const Json* gone_before = before ? before->find(kStartsLeftOut) : nullptr;
  int64_t gone = gone_before && gone_before->integer() ? *gone_before->integer() : 0;
  for (; all.size() >= kMostStarts; ++gone) all.erase(all.begin() + 1);
  all.push_back(start);
  file.set("starts", Json(std::move(all)));
  if (gone > 0) file.set(kStartsLeftOut, gone);
  return file;
}

std::vector<int64_t> unasked_models_in(const Json& file) {
  std::vector<int64_t> iterations;
  const Json* models = file.find(kUnaskedModels);
  for (size_t i = 0; models && models->array() && i < models->array()->size(); ++i)
    if (const int64_t* iteration = (*models->array())[i].integer()) iterations.push_back(*iteration);
  return iterations;
}

Json with_unasked_models(const Json& file, const std::vector<int64_t>& iterations) {
  Json changed(Json::Object{}), models(Json::Array{});
  for (const auto& [name, value] : *file.object())
    if (name != kUnaskedModels) changed.set(name, value);
  for (const int64_t iteration : iterations) models.add(iteration);
  if (!iterations.empty()) changed.set(kUnaskedModels, std::move(models));
  return changed;
}

Json with_end(const Json& file, const std::string& how) {
  Json ended(Json::Object{});
  for (const auto& [name, value] : *file.object()) {
    if (name != "starts" || !value.array() || value.array()->empty()) {
      ended.set(name, value);
      continue;
    }
    Json::Array starts = *value.array();
    starts.back().set("ended", utc_text(unix_time()));
    starts.back().set("how", how);
    ended.set(name, Json(std::move(starts)));
  }
  return ended;
}

}  // namespace hctr
