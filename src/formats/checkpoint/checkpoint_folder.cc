#include "formats/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr std::string_view kName = "iteration_", kPart = ".part", kLeft = ".left";

void check(const std::error_code& error, std::string_view verb, const fs::path& path) {
  if (error) throw Error(Kind::io, cat("cannot ", verb, " '", path.string(), "': ", error.message()));
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  check(error, "remove", path);
}

void move_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  check(error, cat("rename to '", to.string(), "'"), from);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  if (!fs::exists(folder, error)) return paths;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    paths.push_back(at->path());
  check(error, "list", folder);
  return paths;
}

}  // namespace

fs::path checkpoint_path(const fs::path& folder, int64_t iteration) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%06lld", static_cast<long long>(iteration));
  return folder / cat(kName, digits);
}

fs::path part_path(const fs::path& folder, int64_t iteration) {
  fs::path path = checkpoint_path(folder, iteration);
  path += kPart;
  return path;
}

std::optional<int64_t> iteration_of(const fs::path& checkpoint) {
  const std::string name = (checkpoint / "").lexically_normal().parent_path().filename().string();
  if (!name.starts_with(kName)) return std::nullopt;
  const char *begin = name.data() + kName.size(), *end = name.data() + name.size();
  int64_t iteration = 0;
  const auto [at, error] = std::from_chars(begin, end, iteration);
  const bool known = error == std::errc() && at == end && name == checkpoint_path({}, iteration).string();
  return known ? std::optional(iteration) : std::nullopt;
}

std::vector<CheckpointPlace> list_checkpoints(const fs::path& folder) {
  std::vector<CheckpointPlace> places;
  for (const fs::path& path : entries(folder))
    if (const auto iteration = iteration_of(path)) places.push_back({*iteration, path});
  std::sort(places.begin(), places.end(),
            [](const CheckpointPlace& a, const CheckpointPlace& b) { return a.iteration < b.iteration; });
  return places;
}

void remove_parts(const fs::path& folder) {
  for (const fs::path& path : entries(folder))
    if (const std::string name = path.filename().string(); name.starts_with(kName) && name.ends_with(kPart))
      remove_tree(path);
}

void remove_checkpoint(const fs::path& folder, int64_t iteration) {
  const fs::path part = part_path(folder, iteration);
  remove_tree(part);
  move_to(checkpoint_path(folder, iteration), part);
  remove_tree(part);
}

void publish_checkpoint(const fs::path& folder, int64_t iteration) {
  const fs::path part = part_path(folder, iteration);
  sync_to_disk(part);
  move_to(part, checkpoint_path(folder, iteration));
  sync_to_disk(folder);
}

std::vector<fs::path> leave_newer_checkpoints(const fs::path& folder, int64_t iteration) {
  std::vector<fs::path> left;
  for (const CheckpointPlace& place : list_checkpoints(folder)) {
    if (place.iteration <= iteration) continue;
    fs::path to = place.path;
    to += kLeft;
    remove_tree(to);
    move_to(place.path, to);
    left.push_back(to);
  }
  if (!left.empty()) sync_to_disk(folder);
  return left;
}

void sync_to_disk(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!flushed) throw Error(Kind::io, cat("cannot flush '", path.string(), "' to the disk: ", std::strerror(error)));
}

FolderLock::FolderLock(const fs::path& folder) {
  const fs::path path = folder / kLockName;
  create_parent_folder(path);
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error(Kind::io, cat("cannot create '", path.string(), "': ", std::strerror(errno)));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(std::exchange(descriptor_, -1));
  if (error == EWOULDBLOCK)
    throw Error(Kind::io, cat("another run uses the folder '", folder.string(),
                              "': wait until the other run ends, or set another folder for this run"));
  throw Error(Kind::io, cat("cannot lock '", path.string(), "': ", std::strerror(error)));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);  // close() unlocks
}

FolderLock::FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace hctr
