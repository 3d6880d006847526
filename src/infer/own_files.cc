#include "infer/own_files.h"

#include <string_view>

#include "core/base/host_name.h"

namespace hctr {
namespace {

std::string filled_in(std::string path, std::string_view word, const std::string& value) {
  for (size_t at = 0; (at = path.find(word, at)) != path.npos; at += value.size()) path.replace(at, word.size(), value);
  return path;
}

}  // namespace

std::string path_on_host(std::string path) { return filled_in(std::move(path), "{host}", host_name()); }

std::string path_of_rank(std::string path, int rank) {
  return filled_in(std::move(path), "{rank}", std::to_string(rank));
}

}  // namespace hctr
