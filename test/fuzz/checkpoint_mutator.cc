// Mutates inputs of the entry checkpoint_state such that most mutated inputs are parsed as far as the state.
#include <cctype>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fuzz/entries.h"

namespace hctr::fuzz {
namespace {

/// A number for a manifest, valid or invalid.
std::string other_number(std::minstd_rand& random, const std::string& before) {
  static constexpr const char* kNumbers[] = {"0",
                                             "1",
                                             "2",
                                             "3",
                                             "4",
                                             "8",
                                             "9",
                                             "-1",
                                             "27",
                                             "2147483647",
                                             "4294967296",
                                             "5",
                                             "-9223372036854775808",
                                             "10",
                                             "36",
                                             "1004",
                                             "65536",
                                             "1.5",
                                             "9223372036854775807"};
  if (random() % 2 != 0 || before.size() > 9) return kNumbers[random() % std::size(kNumbers)];
  const int near = std::stoi(before) + static_cast<int>(random() % 9) - 4;
  return std::to_string(near);
}

}  // namespace

size_t mutate_checkpoint_state(uint8_t* data, size_t size, size_t max_size, unsigned seed,
                               size_t (*mutate)(uint8_t* data, size_t size, size_t max_size)) {
  std::minstd_rand random(seed + 1);
  const auto* zero = size == 0 ? nullptr : static_cast<const uint8_t*>(std::memchr(data, 0, size));
  if (!zero || random() % 64 == 0) return mutate(data, size, max_size);
  const auto text = static_cast<size_t>(zero - data), state = text + 1;
  if (random() % 16 != 0 && size > state) return state + mutate(data + state, size - state, max_size - state);
  // Replaces one number with another.
  std::vector<size_t> begins;
  for (size_t i = 1; i < text; ++i)
    if (std::isdigit(data[i]) != 0 && (data[i - 1] == ' ' || data[i - 1] == '[')) begins.push_back(i);
  if (begins.empty()) return mutate(data, size, max_size);
  const size_t begin = begins[random() % begins.size()];
  size_t end = begin;
  while (end < text && std::isdigit(data[end]) != 0) ++end;
  const std::string before(data + begin, data + end), now = other_number(random, before);
  if (size - before.size() + now.size() > max_size) return mutate(data, size, max_size);
  std::memmove(data + begin + now.size(), data + end, size - end);
  std::memcpy(data + begin, now.data(), now.size());
  return size - before.size() + now.size();
}

}  // namespace hctr::fuzz
