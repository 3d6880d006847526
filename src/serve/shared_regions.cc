#include "serve/shared_regions.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

// Maximum threads that copy a large input. One thread copies about 5 GB/s: it needed 0.9 ms for 4 MB, the inputs of
// 16,384 samples.
constexpr int kMostCopiers = 8;
constexpr size_t kCopiedBytes = size_t{256} << 10;
constexpr int64_t kPartsWorthThreads = 3;

}  // namespace

const char* word_of(SharedRegion::Kind kind) { return kind == SharedRegion::Kind::system ? "system" : "cuda"; }

void SharedRegions::expect_allowed(Kind kind, const std::string& name) const {
  if (kind == Kind::system && !allowed_.system)
    throw Refusal::invalid("shared memory is off: start the service with --shared-memory to allow regions");
  if (kind == Kind::cuda && !allowed_.cuda)
    throw Refusal::invalid("CUDA shared memory is off: start the service with --cuda-shared-memory to allow regions");
  if (name.empty()) throw Refusal::invalid("a region needs a name");
  const std::lock_guard lock(mutex_);
  if (regions_.contains(name)) throw Refusal::invalid("shared memory region '", name, "' is already registered");
}

void SharedRegions::add(const std::string& name, std::shared_ptr<SharedRegion> region) {
  const std::lock_guard lock(mutex_);
  if (!regions_.emplace(name, std::move(region)).second)
    throw Refusal::invalid("shared memory region '", name, "' is already registered");
}

void SharedRegions::add_system(const std::string& name, const std::string& key, int64_t offset, int64_t bytes) {
  expect_allowed(Kind::system, name);
  add(name, open_system_region(name, key, offset, bytes));
}

void SharedRegions::add_cuda(const std::string& name, const std::string& handle, int64_t device, int64_t bytes) {
  expect_allowed(Kind::cuda, name);
  add(name, open_cuda_region(name, handle, device, bytes));
}

void SharedRegions::remove(Kind kind, const std::string& name) {
  std::map<std::string, std::shared_ptr<SharedRegion>> removed;  // freed after `lock` is released
  const std::lock_guard lock(mutex_);
  for (auto region = regions_.begin(); region != regions_.end();) {
    const auto next = std::next(region);
    if (region->second->kind() == kind && (name.empty() || region->first == name))
      removed.insert(regions_.extract(region));
    region = next;
  }
}

Json SharedRegions::status(Kind kind, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  Json list{Json::Array{}};
  for (const auto& [own, region] : regions_) {
    if (region->kind() != kind || (!name.empty() && own != name)) continue;
    Json row{Json::Object{}};
    row.set("name", own);
    const Json status = region->status();
    for (const auto& [field, value] : *status.object()) row.set(field, value);
    list.add(std::move(row));
  }
  if (!name.empty() && list.array()->empty())
    throw Refusal(Code::not_found, cat("unable to find ", word_of(kind), " shared memory region: '", name, "'"));
  return list;
}

std::shared_ptr<SharedRegion> SharedRegions::find(const std::string& tensor, const Parameters& parameters,
                                                  int64_t& first, int64_t& bytes) const {
  const auto name = text_parameter(parameters, "shared_memory_region");
  if (!name) return nullptr;
  const int64_t offset = count_parameter(parameters, "shared_memory_offset").value_or(0);
  const auto wanted = count_parameter(parameters, "shared_memory_byte_size");
  if (!wanted) throw Refusal::invalid("tensor '", tensor, "': 'shared_memory_byte_size' is missing");
  std::shared_ptr<SharedRegion> region;
  {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(*name);
    if (found == regions_.end())
      throw Refusal(Code::not_found, cat("tensor '", tensor, "': unable to find shared memory region '", *name, "'"));
    region = found->second;
  }
  if (offset > region->bytes() || *wanted > region->bytes() - offset)
    throw Refusal::invalid("tensor '", tensor, "': ", *wanted, " bytes from byte ", offset, " on are outside region '",
                           *name, "', which has ", region->bytes());
  first = offset;
  bytes = *wanted;
  return region;
}

bool SharedRegions::read(const SharedRegion& region, int64_t first, char* to, size_t bytes) const {
  const auto parts = static_cast<int64_t>((bytes + kCopiedBytes - 1) / kCopiedBytes);
  const std::unique_lock alone(copying_, std::try_to_lock);
  if (!alone || parts < kPartsWorthThreads || region.kind() == Kind::cuda) return region.read(first, to, bytes);
  if (!copiers_) copiers_ = std::make_unique<ThreadPool>(std::min(kMostCopiers, usable_cores()));
  std::atomic<bool> whole = true;
  copiers_->parallel_for(parts, 1, [&](int64_t begin, int64_t) {
    const size_t at = static_cast<size_t>(begin) * kCopiedBytes;
    if (!region.read(first + static_cast<int64_t>(at), to + at, std::min(kCopiedBytes, bytes - at))) whole = false;
  });
  return whole;
}

void SharedRegions::attach(InferRequest& request) const {
  for (NamedTensor& input : request.inputs) {
    int64_t first = 0, bytes = 0;
    const std::shared_ptr<SharedRegion> region = find(input.name, input.parameters, first, bytes);
    if (!region) continue;
    const auto size = static_cast<size_t>(bytes);
    const std::shared_ptr<char> copy = buffers_.take(size);
    if (!read(*region, first, copy.get(), size))
      throw Refusal::invalid("input '", input.name, "': the shared memory has become smaller");
    input.data = {copy.get(), size};
    input.owner = copy;
  }
}

bool SharedRegions::deliver(const WantedOutput& wanted, const NamedTensor& tensor) const {
  int64_t first = 0, bytes = 0;
  const std::shared_ptr<SharedRegion> region = find(wanted.name, wanted.parameters, first, bytes);
  if (!region) return false;
  if (static_cast<int64_t>(tensor.data.size()) > bytes)
    throw Refusal::invalid("output '", wanted.name, "' has ", tensor.data.size(), " bytes, but its shared memory has ",
                           bytes);
  if (!region->write(first, tensor.data.data(), tensor.data.size()))
    throw Refusal::invalid("output '", wanted.name, "': the shared memory cannot be written");
  return true;
}

}  // namespace hctr::serve
