// Rows on a disk, ahead of the steps that need them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "base/queue.h"
#include "data/batch_layout.h"
#include "ops/embedding/direct_index.h"

namespace hctr {

/// A thread that passes on the keys of batches that come, so that their rows are read from the disk while the steps
/// before are computed. It is as many batches ahead as the reader. Where memory is short it leaves a batch out: the
/// step then waits for its rows.
class LookAhead {
 public:
  /// The keys of a batch in one of its sparse inputs, with their slots.
  using Ask = std::function<void(size_t sparse_input, std::span<const ops::RowOwner>)>;
  /// Keeps at most so many batches. `ask` is called by the thread, until stop().
  LookAhead(Ask ask, size_t batches);
  ~LookAhead() { stop(); }
  LookAhead(const LookAhead&) = delete;
  LookAhead& operator=(const LookAhead&) = delete;

  /// Any thread: copies the keys of a batch. Does nothing after stop().
  void add(const BatchView&) noexcept;
  /// Ends the thread.
  void stop();

 private:
  /// The keys of a batch in each sparse input.
  using Keys = std::vector<std::vector<ops::RowOwner>>;
  void run() noexcept;

  Ask ask_;
  BoundedQueue<Keys> batches_;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace hctr
