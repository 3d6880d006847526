// Trains the model of a config in this process: trainer CONFIG [RUN_FOLDER].
#include <hctr/error.h>
#include <hctr/trainer.h>

#include <cstdio>

int main(int count, char** words) try {
  hctr::TrainerOptions options;
  options.config = count > 1 ? words[1] : "config.json";
  options.run_dir = count > 2 ? words[2] : "run";
  options.device = hctr::DeviceChoice::cpu;
  hctr::Trainer trainer(options);
  trainer.on_display([](const hctr::TrainerState& at) {
    std::printf("iteration %lld, loss %.4f\n", static_cast<long long>(at.iteration), at.loss);
    return at.loss < 100;  // returning false would stop training, with a checkpoint if the config has a "checkpoint"
  });
  trainer.fit();
  for (const auto& [name, value] : trainer.evaluate()) std::printf("%s %.6f\n", name.c_str(), value);
  trainer.finish();
} catch (const hctr::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return hctr::exit_code(error.kind());
}
