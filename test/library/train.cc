// Example program that trains with the library: library_train CONFIG.json ITERATIONS PREFIX.
#include <exception>
#include <iostream>

#include "hctr/trainer.h"

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  hctr::TrainerOptions options;
  options.config = argv[1];
  options.run_folder = false;
  hctr::Trainer trainer(options);
  trainer.on_display([](const hctr::TrainerState& at) {
    std::cout << "iteration " << at.iteration << " loss " << at.loss << "\n";
    return true;
  });
  trainer.fit({.iteration = std::stoll(argv[2])});
  for (const auto& [name, value] : trainer.evaluate()) std::cout << name << " " << value << "\n";
  std::cout << trainer.save(argv[3]).front().string() << "\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
