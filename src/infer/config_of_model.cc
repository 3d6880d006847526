#include "infer/config_of_model.h"

#include <string>

#include "config/config_file.h"
#include "core/base/expect.h"
#include "infer/load_config.h"
#include "infer/saved_model.h"
#include "infer/taken_encoding.h"

namespace hctr {
namespace {

/// Completes a config with the encoding saved with the model. With EncodingChoice::model, all encoding fields come from
/// the model. With other choices, only fields that the config omits come from the model.
Json completed_config(const ModelOptions& options, const Json& file, std::string& taken) {
  if (options.encoding == EncodingChoice::model)
    return with_encoding_of(saved_config(options.model, options.surroundings.environment).json, file);
  try {
    CompletedConfig completed =
        with_left_out_encoding_of(saved_config(options.model, options.surroundings.environment).json, file);
    taken = completed.taken;
    return completed.config;
  } catch (const Error&) {
    return file;  // errors are reported later, by the code that loads the model
  }
}

}  // namespace

Config config_of_model(const ModelOptions& options, const Log& log) {
  if (!options.config.empty()) {
    ConfigLoading loading{
        .changes = options.changes, .stop = options.stop, .environment = options.surroundings.environment};
    if (options.encoding == EncodingChoice::config) return load_config(options.config, options.strict, log, loading);
    std::string taken;
    loading.complete = [&](const Json& file) { return completed_config(options, file, taken); };
    const Config config = load_config(options.config, options.strict, log, loading);
    if (!taken.empty())
      log.info("note: '", options.config.string(), "' omits ", taken,
               " in the Data layer: using the values "
               "of the model.");
    return config;
  }
  const SavedConfig saved = saved_config(options.model, options.surroundings.environment);
  return load_config(with_changes(saved.json, options.changes), saved.where, options.strict, log);
}

}  // namespace hctr
