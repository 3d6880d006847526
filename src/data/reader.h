// The reader: threads that turn the files of a set into batches in memory that the caller supplies.
//
//   files --(one thread at a time)--> chunks --(workers, in parallel)--> blocks --(collector)--> batch slots --> next()
//
// Chunks get their place in line when they are cut, so the order of samples is that of the file list, for any number of
// workers and in every run. All queues are bounded.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/batch_layout.h"
#include "data/clause.h"
#include "data/norm_header.h"

namespace hctr {

struct ReaderOptions {
  int64_t batch = 0;  ///< samples of all ranks together
  int workers = 1;    ///< parsing threads
  bool repeat = true;  ///< start over at the end of the set; batches then run across the end
  KeyWidth key_width = KeyWidth::detect;
  int rank = 0, ranks = 1;        ///< this rank gets rows [batch * rank / ranks, batch * (rank + 1) / ranks) of each batch
  bool keep_last_partial = true;  ///< without repeat: deliver the last, smaller batch
};

/// Reads one file list. The threads start at once and run ahead until all slots are full.
///
/// Each batch fills its slot up to layout.bytes and, of the StepState, sets first_sample (of this rank's row 0, counted
/// since the start or the last reset()), valid_samples and global_samples. Records that fail their check sum are left out,
/// counted, and logged once per file.
class Reader {
 public:
  /// `slots`: memory of layout.bytes each, aligned for any type, alive as long as the reader.
  /// Errors: those of read_file_list(); Error(data) when a header is wrong or the set is empty.
  Reader(const DataClause&, const std::string& file_list, const BatchLayout&, std::vector<std::byte*> slots,
         const ReaderOptions&, const Log&);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Waits for the next batch and returns its slot: 0, 1, ..., n-1, 0, ... Empty at the end of the set; never when repeating.
  /// Errors: what a thread met, once the batches before it are delivered.
  std::optional<int> next();
  /// The slot may be filled again. Any thread may call it, in any order of slots.
  void release(int slot);
  /// Starts again at the first sample and slot 0. Takes all slots back, so nobody may be using one.
  void reset();

  /// Samples in the set, as the headers promise.
  int64_t samples() const;
  /// Records left out so far because they failed their check sum; those of earlier passes count again.
  int64_t skipped_records() const;

 private:
  struct Set;  // what outlives a reset
  struct Run;  // threads and queues of one go through the set
  std::unique_ptr<Set> set_;
  std::unique_ptr<Run> run_;
};

}  // namespace hctr
