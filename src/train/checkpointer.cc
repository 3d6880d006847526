#include "train/checkpointer.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "core/base/thread_pool.h"
#include "core/device/device.h"
#include "formats/checkpoint/checkpoint_folder.h"

namespace hctr {
namespace {

// With several ranks, it takes collective calls to read rank 0's clock and to learn whether all ranks have written
// their files. Ranks make these calls only every Nth step.
constexpr int64_t kStepsBetweenLooks = 16;

std::string file_of_rank(int rank) { return cat("rank_", rank, ".state"); }

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

constexpr int64_t kLargeState = int64_t{64} << 20;  // bytes; a smaller state is written by one thread

/// The threads that write a file and compute its checksum. Up to a quarter of this rank's cores is used; training needs
/// the other cores.
std::unique_ptr<ThreadPool> threads_beside_training(int64_t bytes, int ranks) {
  const int cores = usable_cores() / ranks;
  if (bytes > kLargeState && cores >= 8) try {
      return std::make_unique<ThreadPool>(std::min(cores / 4, 4));
    } catch (const std::system_error&) {  // the system refused threads, so use one thread
    }
  return std::make_unique<ThreadPool>(1);
}

}  // namespace

struct Checkpointer::Writing {
  int64_t iteration = 0, best_iteration = -1;
  std::optional<int64_t> base;  // for an increment: the iteration of its full checkpoint
  fs::path part, metrics;
  Json about, progress;
  bool again = false;             // whether the state of this iteration is already saved
  bool last = false;              // whether this is the last checkpoint of training
  bool whole = true;              // on rank 0: whether the checkpoint is full and needs no base
  uint32_t crc = 0;               // on rank 0: checksum over all files
  StateIndex index;               // index of this rank's file
  std::vector<HostBytes> pieces;  // contents of this rank's file that are not written yet
  LaterState later;               // contents that the writing thread reads, then writes
  // functions that each return the seconds for which training has waited for reads of `later`
  std::vector<std::function<double()>> waited;
  std::unique_ptr<StateFileWriter> file;  // null: the writing thread opens the file
  std::vector<StateIndex> files;          // on rank 0: the indices of all ranks
  std::string failure;                    // error of this rank; on rank 0, the error of any rank
  double stop_seconds = 0;
  bool gathered = false;           // whether all ranks have written, so that rank 0 publishes the checkpoint
  std::atomic<bool> done = false;  // whether the thread has finished
  std::thread thread;

  void run(const std::function<void()>& work) {
    done = false;
    const auto task = [this, work] {
      try {
        work();
      } catch (const std::exception& error) {
        failure = error.what();
      }
      done = true;
    };
    try {
      thread = std::thread(task);
    } catch (const std::system_error&) {  // the system refused a thread, so training waits for the write
      task();
    }
  }
  void join() {
    if (thread.joinable()) thread.join();
  }
};

Checkpointer::Checkpointer(const CheckpointSection& section, Communicator& comm, Runtime& runtime, Reporter& report,
                           const Saved& saved)
    : section_(section),
      comm_(comm),
      runtime_(runtime),
      report_(report),
      folder_(section.folder),
      saved_(saved.iteration),
      base_(saved.base) {}

Checkpointer::~Checkpointer() {
  if (!writing_) return;
  writing_->join();
  if (comm_.rank() != 0 || (writing_->gathered && writing_->failure.empty())) return;
  std::error_code ignored;  // ignores an error, because the next run removes remaining files
  fs::remove_all(writing_->part, ignored);
}

bool Checkpointer::due(int64_t iteration) {
  if (!section_.given) return false;
  if (section_.every > 0 && iteration % section_.every == 0) return true;
  if (section_.every_minutes <= 0 || (comm_.size() > 1 && iteration % kStepsBetweenLooks != 0)) return false;
  return comm_.any(comm_.rank() == 0 && seconds_since(last_) >= 60 * section_.every_minutes);
}

void Checkpointer::save(Content content) {
  if (!section_.given) return;
  finish();
  const auto begin = Clock::now();
  last_ = begin;
  writing_ = std::make_unique<Writing>();
  Writing& now = *writing_;
  now.iteration = content.iteration;
  now.best_iteration = content.best_iteration;
  now.last = content.last;
  now.part = part_path(folder_, content.iteration);
  now.about = std::move(content.about);
  now.metrics = std::move(content.metrics);
  now.progress = std::move(content.progress);
  decide(now);
  if (now.again) {
    now.gathered = now.done = true;
    if (comm_.rank() == 0) now.run([this, &now] { save_progress(now); });
    return;
  }
  if (comm_.rank() == 0) try {
      std::error_code error;
      fs::remove_all(now.part, error);
      fs::create_directories(now.part, error);
      if (error) now.failure = cat("cannot create '", now.part.string(), "': ", error.message());
    } catch (const std::exception& error) {
      now.failure = error.what();
    }
  const std::string no_folder = comm_.broadcast(now.failure, 0);
  if (!no_folder.empty()) {
    now.failure = no_folder;
    now.gathered = now.done = true;
    return report_end();
  }
  try {
    copy_state(now, content);
  } catch (const Error& error) {
    if (error.kind() == Kind::device) throw;  // a device error ends training, in contrast to a failure to write
    now.failure = error.what();
  } catch (const std::exception& error) {
    now.failure = error.what();
  }
  now.stop_seconds = seconds_since(begin);
  if (comm_.size() == 1) {
    now.gathered = true;
    now.run([this, &now] {
      write_files(now);
      publish(now);
    });
  } else {
    now.run([this, &now] { write_files(now); });
  }
}

void Checkpointer::decide(Writing& now) {
  std::string decision;
  if (comm_.rank() == 0) {
    if (base_ && (base_->increments + 1 >= section_.whole_every ||
                  !fs::exists(checkpoint_path(folder_, base_->iteration) / kManifestName)))
      base_.reset();
    decision = saved_ == now.iteration ? "again" : base_ ? cat(base_->iteration) : "";
  }
  decision = comm_.broadcast(decision, 0);
  now.again = decision == "again";
  if (!now.again && !decision.empty()) now.base = std::stoll(decision);
}

void Checkpointer::copy_state(Writing& now, const Content& content) {
  const StateWriter::Which which{now.iteration, now.base};
  now.index.file = file_of_rank(comm_.rank());
  const StreamRef stream = runtime_.compute_stream();
  const int64_t free = free_memory(Device{}), most = free / 2 / comm_.size();
  int64_t copied = 0;
  now.later.memory = most;
  const auto write = [&](const HostBytes& piece) { now.file->write_at(piece.offset, piece.span()); };
  const StateWriter::Sink keep = [&](HostBytes piece) {
    const auto bytes = static_cast<int64_t>(piece.bytes);
    copied += bytes;
    if (!now.file && bytes <= now.later.memory) {
      now.later.memory -= bytes;
      return now.pieces.push_back(std::move(piece));
    }
    if (!now.file) now.file = std::make_unique<StateFileWriter>(now.part / now.index.file);
    for (HostBytes& before : std::exchange(now.pieces, {})) {
      write(before);
      now.later.memory += static_cast<int64_t>(std::exchange(before, {}).bytes);
    }
    write(piece);
  };
  std::optional<StagedCopies> staged;
  if (stream.device.is_cuda()) staged.emplace(stream.device, runtime_.threads());
  content.state(StateWriter(comm_.rank(), stream, now.index, keep, which, {staged ? &*staged : nullptr, &now.later}));
  for (const LaterRows& rows : now.later.rows) now.waited.push_back(rows.waited);
  if (comm_.rank() != 0) return;
  if (now.file && !std::exchange(warned_memory_, true))
    report_.event(cat("Training waits while checkpoints are written: a copy of ", copied / 1000000,
                      " MB per rank exceeds half of the ", free / 1000000, " MB of free memory."));
  if (!now.later.refused.empty() && !std::exchange(warned_disk_, true))
    report_.event(cat("Training waits while rows on disk are read for checkpoints: ", now.later.refused, "."));
}

void Checkpointer::write_files(Writing& now) {
  // `later` is local, so that an error destroys its elements too. Training may wait for their reads until the elements
  // are destroyed.
  LaterState later = std::exchange(now.later, {});
  if (!now.failure.empty()) return;
  if (!now.file) now.file = std::make_unique<StateFileWriter>(now.part / now.index.file);
  const auto threads = threads_beside_training(now.index.bytes, comm_.size());
  for (HostBytes& piece : now.pieces) {
    now.file->write_at(piece.offset, piece.span(), *threads);
    piece = {};
  }
  for (; !later.rows.empty(); later.rows.erase(later.rows.begin())) now.file->write(later.rows.front());
  now.file->commit(now.index);
}

void Checkpointer::publish(Writing& now) {
  if (!now.failure.empty()) return;
  if (now.files.empty()) now.files.push_back(now.index);
  if (!now.metrics.empty()) sync_to_disk(now.metrics);
  Manifest manifest{now.about, now.progress, now.files};
  now.crc = manifest.files_crc();
  // The checkpoint needs no base if all its arrays are complete, for example if all rows of all tables have changed.
  for (const StateIndex& index : now.files)
    for (const StateArray& array : index.arrays) now.whole = now.whole && !array.from_base;
  if (!now.whole)
    manifest.base = {
        .name = checkpoint_path({}, base_->iteration).string(), .crc = base_->crc, .increment = base_->increments + 1};
  write_manifest(now.part, manifest);
  publish_checkpoint(folder_, now.iteration);
  prune(now.best_iteration);
}

void Checkpointer::save_progress(Writing& now) const {
  const fs::path complete = checkpoint_path(folder_, now.iteration);
  Manifest manifest = read_manifest(complete);
  manifest.progress = now.progress;
  if (!now.metrics.empty()) sync_to_disk(now.metrics);
  write_manifest(complete, manifest);
  sync_to_disk(complete);
}

void Checkpointer::prune(int64_t best_iteration) const {
  const std::vector<CheckpointPlace> all = list_checkpoints(folder_);
  const size_t last = std::min(all.size(), static_cast<size_t>(section_.keep_last));
  const auto kept = [&](size_t i) { return i + last >= all.size() || all[i].iteration == best_iteration; };
  if (last == all.size()) return;
  std::set<std::string> bases;
  try {
    for (size_t i = 0; i < all.size(); ++i)
      if (const auto base = kept(i) ? base_of(all[i].path) : std::nullopt) bases.insert(*base);
  } catch (const Error&) {
    return;  // a kept checkpoint is unreadable, so its base is unknown; remove nothing
  }
  for (size_t i = all.size(); i-- > 0;)  // removes increments before their bases
    if (!kept(i) && !bases.contains(all[i].path.filename().string())) remove_checkpoint(folder_, all[i].iteration);
}

void Checkpointer::poll(int64_t iteration) {
  if (!writing_) return;
  if (writing_->gathered) {
    if (writing_->done) report_end();
  } else if (iteration % kStepsBetweenLooks == 0 && !comm_.any(!writing_->done)) {
    complete();
  }
}

/// Called once all ranks have written. Rank 0 collects their file indices and publishes the checkpoint.
void Checkpointer::complete() {
  Writing& now = *writing_;
  now.join();
  const std::string mine =
      now.failure.empty() ? to_json(now.index).text() : Json(Json::Object{{"failure", now.failure}}).text();
  const std::vector<std::string> texts = comm_.gather(mine, 0);
  now.gathered = true;
  for (const std::string& text : texts) {
    const Json json = Json::parse(text, "the files of a rank");
    if (const Json* failure = json.find("failure"))
      now.failure = *failure->string();
    else
      now.files.push_back(state_index(json));
  }
  if (comm_.rank() == 0) now.run([this, &now] { publish(now); });
}

void Checkpointer::finish() {
  if (!writing_) return;
  if (!writing_->gathered) complete();
  writing_->join();
  report_end();
}

bool Checkpointer::has(int64_t iteration) {
  return section_.given && comm_.any(comm_.rank() == 0 && saved_ == iteration);
}

/// Reports that the checkpoint is complete or has failed.
void Checkpointer::report_end() {
  Writing& now = *writing_;
  now.join();
  const fs::path path = checkpoint_path(folder_, now.iteration);
  if (now.failure.empty()) saved_ = now.iteration;
  if (comm_.rank() == 0 && !now.again) {
    if (now.base && base_)
      ++base_->increments;
    else if (now.failure.empty() && section_.whole_every > 1)
      base_ = {now.iteration, now.crc, 0};
  }
  if (comm_.rank() == 0 && !now.failure.empty()) {
    report_.warning(cat(now.again ? "the progress in " : "", "checkpoint '", path.string(),
                        "' could not be saved: ", now.failure, now.last ? "" : "; training continues"));
    // Ignores an error of remove_all(): the failure to save was just reported, and the next run removes files that
    // remain.
    std::error_code ignored;
    fs::remove_all(now.part, ignored);
  } else if (comm_.rank() == 0 && !now.again) {
    double waited = 0;
    for (const auto& of_rows : now.waited) waited = std::max(waited, of_rows());
    report_.event(cat("Checkpoint: ", path.string(), now.whole ? "" : cat(", changes since iteration ", *now.base),
                      " (training stopped for ", formatted("%.3f", now.stop_seconds), " s",
                      waited > 0 ? formatted(", and waited %.3f s for disk space", waited) : "", ")"));
  }
  writing_.reset();
}

}  // namespace hctr
