#include "serve/shared_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/expect.h"

namespace hctr::serve {

struct SharedRegions::Region {
  std::string key;
  int64_t offset = 0, bytes = 0;
  int file = -1;

  ~Region() {
    if (file >= 0) ::close(file);
  }
};

void SharedRegions::add(const std::string& name, const std::string& key, int64_t offset, int64_t bytes) {
  if (!allowed_)
    throw Refusal::invalid("shared memory is off: start the service with --shared-memory to allow regions");
  if (name.empty()) throw Refusal::invalid("a region needs a name");
  if (key.size() < 2 || key.size() > 250 || key.find('/', 1) != key.npos || key.find('\0') != key.npos)
    throw Refusal::invalid("'", key, "' is not a name of shared memory: expected '/' followed by a name");
  if (offset < 0 || bytes <= 0 || offset > (int64_t{1} << 48) || bytes > (int64_t{1} << 48))
    throw Refusal::invalid("region '", name, "': ", bytes, " bytes from byte ", offset,
                           " on: expected a size above 0 "
                           "and below 2^48");
  auto region = std::make_shared<Region>();
  region->key = key;
  region->offset = offset;
  region->bytes = bytes;
  region->file = ::shm_open(key.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (region->file < 0)
    throw Refusal::invalid("shared memory '", key, "' cannot be opened: ", std::generic_category().message(errno));
  struct stat status {};
  const bool known = ::fstat(region->file, &status) == 0;
  if (!known || status.st_size < offset + bytes)
    throw Refusal::invalid("region '", name, "': shared memory '", key, "' has ", known ? int64_t{status.st_size} : 0,
                           " bytes, and ", bytes, " from byte ", offset, " on are expected");
  const std::lock_guard lock(mutex_);
  if (!regions_.emplace(name, std::move(region)).second)
    throw Refusal::invalid("shared memory region '", name, "' is already registered");
}

void SharedRegions::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (name.empty())
    regions_.clear();
  else
    regions_.erase(name);
}

Json SharedRegions::status(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (!name.empty() && !regions_.contains(name))
    throw Refusal(Code::not_found, cat("unable to find system shared memory region: '", name, "'"));
  Json list{Json::Array{}};
  for (const auto& [own, region] : regions_) {
    if (!name.empty() && own != name) continue;
    Json row{Json::Object{}};
    row.set("name", own).set("key", region->key).set("offset", region->offset).set("byte_size", region->bytes);
    list.add(std::move(row));
  }
  return list;
}

std::shared_ptr<SharedRegions::Region> SharedRegions::find(const std::string& tensor, const Parameters& parameters,
                                                           int64_t& begin, int64_t& bytes) const {
  const auto name = text_parameter(parameters, "shared_memory_region");
  if (!name) return nullptr;
  const int64_t offset = count_parameter(parameters, "shared_memory_offset").value_or(0);
  const auto wanted = count_parameter(parameters, "shared_memory_byte_size");
  if (!wanted) throw Refusal::invalid("tensor '", tensor, "': 'shared_memory_byte_size' is missing");
  std::shared_ptr<Region> region;
  {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(*name);
    if (found == regions_.end())
      throw Refusal::invalid("tensor '", tensor, "': unable to find shared memory region '", *name, "'");
    region = found->second;
  }
  if (offset > region->bytes || *wanted > region->bytes - offset)
    throw Refusal::invalid("tensor '", tensor, "': ", *wanted, " bytes from byte ", offset, " on are outside region '",
                           *name, "', which has ", region->bytes);
  begin = region->offset + offset;
  bytes = *wanted;
  return region;
}

void SharedRegions::attach(InferRequest& request) const {
  for (NamedTensor& input : request.inputs) {
    int64_t begin = 0, bytes = 0;
    const std::shared_ptr<Region> region = find(input.name, input.parameters, begin, bytes);
    if (!region) continue;
    const auto copy = std::make_shared<std::string>(static_cast<size_t>(bytes), '\0');
    for (size_t done = 0; done < copy->size();) {
      const ssize_t read = ::pread(region->file, copy->data() + done, copy->size() - done,
                                   static_cast<off_t>(begin) + static_cast<off_t>(done));
      if (read <= 0) throw Refusal::invalid("input '", input.name, "': the shared memory has become smaller");
      done += static_cast<size_t>(read);
    }
    input.data = *copy;
    input.owner = copy;
  }
}

bool SharedRegions::deliver(const WantedOutput& wanted, const NamedTensor& tensor) const {
  int64_t begin = 0, bytes = 0;
  const std::shared_ptr<Region> region = find(wanted.name, wanted.parameters, begin, bytes);
  if (!region) return false;
  if (static_cast<int64_t>(tensor.data.size()) > bytes)
    throw Refusal::invalid("output '", wanted.name, "' has ", tensor.data.size(),
                           " bytes, but its shared memory "
                           "has ",
                           bytes);
  for (size_t done = 0; done < tensor.data.size();) {
    const ssize_t wrote = ::pwrite(region->file, tensor.data.data() + done, tensor.data.size() - done,
                                   static_cast<off_t>(begin) + static_cast<off_t>(done));
    if (wrote <= 0) throw Refusal::invalid("output '", wanted.name, "': the shared memory cannot be written");
    done += static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace hctr::serve
