#include "app/check_command.h"

#include "app/check_data.h"
#include "app/check_store.h"
#include "config/config_file.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "program/terminal.h"
#include "train/known_gpus.h"

namespace hctr {

CheckCommand::CheckCommand(CommandLine& app) {
  app.add_option(
         "--check", config_,
         "Check FILE.json: names, values and shapes; print the layer table, the memory that each GPU needs and, "
         "for a known GPU, the expected time of a step. Needs no GPU and no data. For a store.json or ps.json: "
         "print the size of its tables on each level")
      .type_name("FILE.json");
  app.add_flag("--check-data", data_,
               "Also open the data, read the first samples of each file, and compare labels, dense values and keys "
               "with the config");
  app.add_option("--format", format_, "Format of the result: text, or JSON for programs")
      .one_of({"text", "json"})
      .show_default();
  app.add_option("--gpu-memory", gpu_memory_, "GPU memory in GiB to check against; default: this machine's GPU")
      .positive_number()
      .type_name("GIB");
  app.add_option("--gpus", options_.gpus, "Number of GPUs; default: the config's").range(1, 4096);
  app.add_option("--gpu-name", options_.gpu_name, "The GPU to check for; default: this machine's").one_of(gpu_names());
}

int CheckCommand::run(const JobOptions& job) {
  static_cast<JobOptions&>(options_) = job;
  options_.config = config_;
  options_.json = format_ == "json";
  // This check reads the config once before the command itself reads it. A pipe cannot be read twice, so a pipe must
  // contain a training config.
  if (fs::is_regular_file(config_) &&
      is_store_config(read_config_file(config_, job.changes, nullptr, job.surroundings.environment))) {
    check_store(config_, options_.json, job.surroundings);
    return 0;
  }
  if (gpu_memory_ > 0) options_.gpu_memory = gpu_memory_;
  DataCheck data;
  if (data_) {
    data = check_data(read_config_file(config_, job.changes, nullptr, job.surroundings.environment), config_);
    options_.slots = data.slots;
  }
  const std::string found = check(options_, [](std::string_view line) { print_note(cat(line, "\n")); });
  if (options_.json) {
    Json json = Json::parse(found, "the result of --check");
    if (data_) json.set("data", data.json);
    print_json(json.text(2) + "\n");
  } else {
    print(found + data.text);
    if (data.problems == 0) print(config_ + ": OK\n");
  }
  if (data.problems > 0)
    throw Error(Kind::data, cat("the data do not fit '", config_, "': ", data.problems,
                                data.problems == 1 ? " problem was" : " problems were", " found, see above"));
  return 0;
}

}  // namespace hctr
