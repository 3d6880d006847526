#include "store/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "core/base/expect.h"
#include "hctr/error.h"

namespace hctr {
namespace {

constexpr uint64_t kSharedMagic = 0x7265646873726374u;
constexpr uint32_t kSharedLayout = 1;
constexpr int64_t kMostProcesses = 256;
constexpr uint64_t kSharedChunk = uint64_t{1} << 20;  // memory is reserved from the system in chunks
constexpr uint64_t kSharedGranule = 16;
constexpr uint64_t kNoPin = std::numeric_limits<uint64_t>::max();
// offsets of the bytes of the file that processes lock
constexpr int64_t kWriterLock = 0, kOpeningLock = 1, kFirstSlot = 16;
const char* const kSharedFolder = "/dev/shm/";
const char* const kSegmentPrefix = "huge_ctr_store.";

std::string system_reason() { return std::generic_category().message(errno); }

uint64_t rounded_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }
/// The bytes that an array of `bytes` bytes takes.
uint64_t in_granules(uint64_t bytes) { return rounded_up(std::max<uint64_t>(bytes, 1), kSharedGranule); }

int lock_call(int file, int command, short type, int64_t first, int64_t count, bool* locked_by_other = nullptr) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  const int result = ::fcntl(file, command, &lock);
  if (locked_by_other) *locked_by_other = lock.l_type != F_UNLCK;
  return result;
}

/// Locks a byte of the file. Returns false if the byte is locked through another open() of the file, also in this
/// process.
bool lock_byte(int file, int64_t byte) {
  if (lock_call(file, F_OFD_SETLK, F_WRLCK, byte, 1) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw Error(Kind::io, cat("shared memory cannot be locked: ", system_reason()));
}

void unlock_byte(int file, int64_t byte) { lock_call(file, F_OFD_SETLK, F_UNLCK, byte, 1); }

bool used_by_others(int file) {
  bool used = false;
  if (lock_call(file, F_OFD_GETLK, F_WRLCK, kFirstSlot, kMostProcesses, &used) != 0)
    throw Error(Kind::io, cat("locks of shared memory cannot be read: ", system_reason()));
  return used;
}

bool unlinked(int file) {
  struct stat status {};
  return ::fstat(file, &status) != 0 || status.st_nlink == 0;
}

/// Removes segments whose processes have all ended. Ignores the files of other users.
void remove_unused(const std::string& except) {
  std::error_code error;
  for (std::filesystem::directory_iterator one(kSharedFolder, error), end; !error && one != end; one.increment(error)) {
    const std::string path = one->path().string();
    if (path == except || !one->path().filename().string().starts_with(kSegmentPrefix)) continue;
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (lock_call(file, F_OFD_SETLK, F_WRLCK, kOpeningLock, 1) == 0 && !used_by_others(file) && !unlinked(file))
      ::unlink(path.c_str());
    ::close(file);
  }
}

}  // namespace

struct SharedSegment::Header {
  uint64_t magic = kSharedMagic;
  uint32_t layout = kSharedLayout, header_bytes = sizeof(Header);
  uint64_t mapped = 0;  // bytes of address space that each process maps
  std::atomic<uint64_t> end{0};
  std::atomic<uint64_t> commits{0};
  std::atomic<uint64_t> roots[2] = {};  // commit n has root n % 2
  std::atomic<int32_t> writer{0};
  std::atomic<int32_t> loading{0};
  // [process] the oldest and the newest pinned commit
  std::atomic<uint64_t> oldest[kMostProcesses], newest[kMostProcesses];
};

std::string SharedSegment::path_of(const std::string& name) { return cat(kSharedFolder, kSegmentPrefix, name); }

SharedSegment::Header& SharedSegment::header() const { return *reinterpret_cast<Header*>(base_); }

std::shared_ptr<SharedSegment> SharedSegment::open(const std::string& name) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<int32_t>::is_always_lock_free);
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (name.empty() || name.size() > 100 || !std::all_of(name.begin(), name.end(), fits))
    throw Error(Kind::config, cat("'", name,
                                  "' is not a name of shared memory: expected 1 to 100 of the characters "
                                  "a-z, A-Z, 0-9, '.', '_' and '-'"));
  remove_unused(path_of(name));
  const std::shared_ptr<SharedSegment> segment(new SharedSegment(name));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!segment->try_open()) {
    if (std::chrono::steady_clock::now() > end)
      throw Error(Kind::io, cat("shared memory '", name, "': another process has been opening it for 10 s"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return segment;
}

bool SharedSegment::try_open() {
  const std::string path = path_of(name_);
  if (file_ >= 0) ::close(file_);
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0)
    throw Error(Kind::io, cat("shared memory '", name_, "': '", path, "' cannot be opened: ", system_reason()));
  if (!lock_byte(file_, kOpeningLock) || unlinked(file_)) return false;
  struct stat status {};
  ::fstat(file_, &status);
  if (used_by_others(file_)) {
    map_existing(static_cast<uint64_t>(status.st_size));
  } else if (status.st_size > 0) {
    ::unlink(path.c_str());  // all of its processes have ended
    return false;
  } else {
    create();
  }
  take_slot();
  unlock_byte(file_, kOpeningLock);
  return true;
}

void SharedSegment::create() {
  struct statvfs system {};
  const bool known = ::fstatvfs(file_, &system) == 0 && system.f_blocks > 0;
  // Address space for all memory that the file system can have.
  const uint64_t bytes = known ? uint64_t{system.f_blocks} * system.f_frsize : uint64_t{1} << 40;
  mapped_ = rounded_up(std::max(bytes, 4 * kSharedChunk), kSharedChunk);
  const uint64_t first = rounded_up(sizeof(Header), kSharedChunk);
  if (::fallocate(file_, 0, 0, static_cast<off_t>(first)) != 0)
    throw Error(Kind::io,
                cat("shared memory '", name_, "' cannot be created in ", kSharedFolder, ": ", system_reason()));
  void* const base = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (base == MAP_FAILED)
    throw Error(Kind::io, cat("shared memory '", name_, "' cannot be mapped (", mapped_, " bytes): ", system_reason()));
  base_ = static_cast<std::byte*>(base);
  Header* const made = new (base_) Header;
  made->mapped = mapped_;
  for (auto& one : made->oldest) one = kNoPin;
  for (auto& one : made->newest) one = kNoPin;
  made->end = first;
}

void SharedSegment::map_existing(uint64_t file_bytes) {
  const auto damaged = [&](const std::string& why) {
    return Error(Kind::data, cat("shared memory '", name_, "' (", path_of(name_), ") is damaged: ", why,
                                 "; end the processes that use it"));
  };
  struct Start {
    uint64_t magic;
    uint32_t layout, header_bytes;
    uint64_t mapped;
  } start{};
  if (::pread(file_, &start, sizeof start, 0) != static_cast<ssize_t>(sizeof start) || start.magic != kSharedMagic)
    throw damaged("it does not start as a segment of huge_ctr");
  if (start.layout != kSharedLayout || start.header_bytes != sizeof(Header))
    throw Error(Kind::config, cat("shared memory '", name_, "' is used by another version of huge_ctr (layout ",
                                  start.layout, "/", start.header_bytes, ", expected ", kSharedLayout, "/",
                                  sizeof(Header), "): end its processes, or choose another name"));
  if (file_bytes < sizeof(Header) || start.mapped < file_bytes)
    throw damaged(cat("it has ", file_bytes, " bytes of at most ", start.mapped));
  void* const base = ::mmap(nullptr, start.mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (base == MAP_FAILED)
    throw Error(Kind::io,
                cat("shared memory '", name_, "' cannot be mapped (", start.mapped, " bytes): ", system_reason()));
  base_ = static_cast<std::byte*>(base);
  mapped_ = start.mapped;
  if (const uint64_t end = header().end; end > file_bytes)
    throw damaged(cat("it is truncated to ", file_bytes, " of ", end, " bytes"));
}

void SharedSegment::take_slot() {
  for (slot_ = 0; slot_ < kMostProcesses; ++slot_)
    if (lock_byte(file_, kFirstSlot + slot_)) {
      show_pins();
      return;
    }
  slot_ = -1;
  throw Error(Kind::config, cat("shared memory '", name_, "' is used by ", kMostProcesses, " processes already"));
}

SharedSegment::~SharedSegment() {
  if (slot_ >= 0) {
    stop_writing();
    // A process that holds this lock is opening the segment and will need it.
    if (lock_call(file_, F_OFD_SETLK, F_WRLCK, kOpeningLock, 1) == 0) {
      bool used = true;
      if (lock_call(file_, F_OFD_GETLK, F_WRLCK, kFirstSlot, kMostProcesses, &used) == 0 && !used && !unlinked(file_))
        ::unlink(path_of(name_).c_str());
    }
  }
  if (base_) ::munmap(base_, mapped_);
  if (file_ >= 0) ::close(file_);  // releases the locks
}

uint64_t SharedSegment::commits() const { return header().commits; }
int32_t SharedSegment::writer() const { return header().writer; }
bool SharedSegment::loading() const { return header().loading != 0; }
void SharedSegment::set_loading(bool loads) { header().loading = loads; }

/// The process shows its pin before it reads the root. If the commit is still the last one afterwards, the writer sees
/// the pin before it reuses memory of that commit.
std::shared_ptr<const SharedSegment::Pin> SharedSegment::pin() {
  const std::lock_guard lock(mutex_);
  for (;;) {
    const uint64_t commit = header().commits;
    const auto added = pins_.insert(commit);
    show_pins();
    const uint64_t root = header().roots[commit % 2];
    if (header().commits == commit) return std::make_shared<const Pin>(shared_from_this(), commit, root);
    pins_.erase(added);
  }
}

void SharedSegment::unpin(uint64_t commit) {
  const std::lock_guard lock(mutex_);
  pins_.erase(pins_.find(commit));
  show_pins();
}

/// A writer that reads the numbers meanwhile sees a range that includes all pins.
void SharedSegment::show_pins() {
  const uint64_t oldest = pins_.empty() ? kNoPin : *pins_.begin(), newest = pins_.empty() ? kNoPin : *pins_.rbegin();
  const bool grows = oldest < header().oldest[slot_];
  if (grows) header().oldest[slot_] = oldest;
  header().newest[slot_] = newest;
  if (!grows) header().oldest[slot_] = oldest;
}

const std::byte* SharedSegment::at(uint64_t offset, uint64_t bytes) const {
  const uint64_t end = header().end;
  if (offset < sizeof(Header) || offset % kSharedGranule != 0 || offset > end || bytes > end - offset || end > mapped_)
    throw Error(Kind::data, cat("shared memory '", name_, "' is damaged: bytes ", offset, " to ", offset + bytes,
                                " are outside of its ", end, " bytes"));
  return base_ + offset;
}

bool SharedSegment::become_writer() {
  if (writes_) return true;
  if (!lock_byte(file_, kWriterLock)) return false;
  header().writer = static_cast<int32_t>(::getpid());
  writes_ = true;
  return true;
}

void SharedSegment::stop_writing() {
  if (!writes_) return;
  writes_ = false;
  unlock_byte(file_, kWriterLock);
}

/// The oldest and the newest commit that each living process pins.
std::vector<std::pair<uint64_t, uint64_t>> SharedSegment::pins_of_processes() {
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (int64_t slot = 0; slot < kMostProcesses; ++slot) {
    if (header().oldest[slot] == kNoPin) continue;
    if (slot != slot_ && lock_byte(file_, kFirstSlot + slot)) {  // the process has ended
      header().oldest[slot] = kNoPin;
      header().newest[slot] = kNoPin;
      unlock_byte(file_, kFirstSlot + slot);
      continue;
    }
    all.emplace_back(header().oldest[slot], header().newest[slot]);
  }
  return all;
}

/// Reserves memory for a range, so that a write to it cannot fail.
void SharedSegment::back(Range range) {
  for (uint64_t chunk = range.offset / kSharedChunk; chunk * kSharedChunk < range.offset + range.bytes; ++chunk) {
    if (chunk >= backing_.size()) backing_.resize(chunk + 1);
    if (backing_[chunk] == Backing::reserved) continue;
    if (::fallocate(file_, 0, static_cast<off_t>(chunk * kSharedChunk), static_cast<off_t>(kSharedChunk)) != 0)
      throw Error(Kind::io, cat("shared memory '", name_, "' cannot grow to ", (chunk + 1) * kSharedChunk, " bytes in ",
                                kSharedFolder, ": ", system_reason(), "; a container may need a larger --shm-size"));
    backing_[chunk] = Backing::reserved;
  }
}

uint64_t SharedSegment::allocate(uint64_t bytes) {
  bytes = in_granules(bytes);
  const std::lock_guard lock(mutex_);
  std::optional<uint64_t> offset = free_.find(bytes);
  if (!offset) {
    const uint64_t end = header().end, added = rounded_up(bytes, kSharedChunk);
    if (added > mapped_ - end)
      throw Error(Kind::io, cat("shared memory '", name_, "' cannot grow beyond the ", mapped_, " bytes of ",
                                kSharedFolder, "; a container may need a larger --shm-size"));
    back({end, added});
    header().end = end + added;
    free_.add(end, added);
    offset = free_.find(bytes);
  }
  back({*offset, bytes});
  free_.take(*offset, bytes);
  return *offset;
}

void SharedSegment::free(Range range) {
  const std::lock_guard lock(mutex_);
  free_.add(range.offset, in_granules(range.bytes));
}

void SharedSegment::publish(uint64_t root, const std::vector<Range>& replaced) {
  {
    const std::lock_guard lock(mutex_);
    const uint64_t next = header().commits + 1;
    replaced_.emplace_back(next, replaced);
    header().roots[next % 2] = root;
    header().commits = next;
  }
  reclaim();
}

void SharedSegment::reclaim() {
  const std::lock_guard lock(mutex_);
  const auto pins = pins_of_processes();
  bool freed = false;
  for (auto& [commit, ranges] : replaced_)
    std::erase_if(ranges, [&, replaced = commit](const Range& range) {
      for (const auto& [oldest, newest] : pins)
        if (range.made <= newest && replaced > oldest) return false;
      free_.add(range.offset, in_granules(range.bytes));
      return freed = true;
    });
  std::erase_if(replaced_, [](const auto& one) { return one.second.empty(); });
  if (!freed) return;
  for (const auto& [offset, bytes] : free_.ranges())
    for (uint64_t chunk = (offset + kSharedChunk - 1) / kSharedChunk; (chunk + 1) * kSharedChunk <= offset + bytes;
         ++chunk)
      if (chunk < backing_.size() && backing_[chunk] != Backing::none &&
          ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(chunk * kSharedChunk),
                      static_cast<off_t>(kSharedChunk)) == 0)
        backing_[chunk] = Backing::none;
}

void SharedSegment::take_over(std::vector<Range> used) {
  const std::lock_guard lock(mutex_);
  std::sort(used.begin(), used.end(), [](const Range& a, const Range& b) { return a.offset < b.offset; });
  std::vector<Range> gaps;
  uint64_t at = rounded_up(sizeof(Header), kSharedChunk);
  const uint64_t end = header().end;
  for (const Range& one : used) {
    if (one.offset < at)
      throw Error(Kind::data, cat("shared memory '", name_, "' is damaged: two arrays have byte ", one.offset));
    if (one.offset > at) gaps.push_back({at, one.offset - at});
    at = one.offset + in_granules(one.bytes);
  }
  if (end > at) gaps.push_back({at, end - at});
  free_.clear();
  backing_.assign(end / kSharedChunk, Backing::unknown);  // back() reserves the chunks again, which keeps their content
  replaced_.clear();
  replaced_.emplace_back(header().commits, std::move(gaps));  // other processes may still read earlier commits
}

}  // namespace hctr
