// Memory of a host that several processes map: one process writes, and the others read committed states.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/free_ranges.h"

namespace hctr {

/// A file in the system's shared memory (/dev/shm). The writer never changes committed bytes: it writes to free memory
/// and then publishes the offset of a new root. A killed writer thus leaves the last commit intact. Each process locks
/// bytes of the file; the system releases the locks of a process that ends, also if it is killed. The first process to
/// open an unused segment removes that segment and creates a new one; the last process to close a segment removes the
/// segment.
///
/// A process pins the commits that it reads. Memory that a commit has replaced is reused once no living process pins a
/// commit that uses the memory, so a stopped process keeps only the memory of the commits that it pins.
class SharedSegment : public std::enable_shared_from_this<SharedSegment> {
 public:
  struct Range {
    uint64_t offset = 0, bytes = 0;
    uint64_t made = 0;  ///< the first commit that uses the memory; 0: unknown
  };
  /// Keeps the memory of a commit.
  struct Pin {
    Pin(std::shared_ptr<SharedSegment> of, uint64_t number, uint64_t at)
        : segment(std::move(of)), commit(number), root(at) {}
    ~Pin() { segment->unpin(commit); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    std::shared_ptr<SharedSegment> segment;
    uint64_t commit, root;  ///< root: the offset given to publish(); 0: nothing is published yet
  };

  /// Also removes segments of other names whose processes have all ended. Errors: Error(config) for a bad name, or if a
  /// program with another layout uses the segment; Error(data) if the segment is damaged; Error(io).
  static std::shared_ptr<SharedSegment> open(const std::string& name);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  static std::string path_of(const std::string& name);

  const std::string& name() const { return name_; }
  /// The number of the last commit.
  uint64_t commits() const;
  std::shared_ptr<const Pin> pin();
  /// Errors: Error(data) if the range is outside of the segment.
  const std::byte* at(uint64_t offset, uint64_t bytes) const;

  /// Becomes the writer if no living process is. Returns whether this process is the writer.
  bool become_writer();
  void stop_writing();
  bool writes() const { return writes_; }
  int32_t writer() const;  ///< process number of the current or the last writer
  /// Whether the writer is still loading models.
  bool loading() const;

  // Only the writer may call the following functions.
  void set_loading(bool);
  /// Memory that no commit uses. Errors: Error(io) if shared memory is full.
  uint64_t allocate(uint64_t bytes);
  std::byte* memory(uint64_t offset) { return base_ + offset; }
  /// Frees memory that no commit has used.
  void free(Range);
  /// `replaced`: memory of earlier commits that the new commit does not use.
  void publish(uint64_t root, const std::vector<Range>& replaced);
  /// Frees memory that no process reads any more, and returns large free ranges to the system.
  void reclaim();
  /// Call after become_writer(): `used` is the memory of the last commit; all other memory becomes free.
  void take_over(std::vector<Range> used);

 private:
  struct Header;
  explicit SharedSegment(std::string name) : name_(std::move(name)) {}
  bool try_open();
  void create();
  void map_existing(uint64_t file_bytes);
  void take_slot();
  void unpin(uint64_t commit);
  void show_pins();
  std::vector<std::pair<uint64_t, uint64_t>> pins_of_processes();
  void back(Range);
  Header& header() const;

  std::string name_;
  int file_ = -1;
  int64_t slot_ = -1;
  std::byte* base_ = nullptr;
  uint64_t mapped_ = 0;
  std::atomic<bool> writes_ = false;
  std::mutex mutex_;
  std::multiset<uint64_t> pins_;
  FreeRanges free_;
  enum class Backing : uint8_t { none, unknown, reserved };
  std::vector<Backing> backing_;  // [chunk] whether the system has reserved memory for it
  std::vector<std::pair<uint64_t, std::vector<Range>>>
      replaced_;  // [n] commit, and memory that only earlier commits use
};

}  // namespace hctr
