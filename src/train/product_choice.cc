#include "train/product_choice.h"

#include "core/base/files.h"
#include "core/comm/collective_error.h"
#include "train/product_file.h"

namespace hctr {
namespace {

/// Returns the result of `body`. After an error, logs a warning with `what` and the reason, and returns an empty
/// result.
template <class Body>
ops::ProductAlgorithms read_or_warn(const Log& log, const std::string& what, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.kind() != Kind::data && error.kind() != Kind::io) throw;
    log.warning(what, " unusable: ", error.what(), "; measuring GEMMs again");
    return {};
  }
}

void write_or_warn(const fs::path& path, const std::string& text, const Log& log) {
  try {
    create_parent_folder(path);
    write_text(path, text);
  } catch (const Error& error) {
    if (error.kind() != Kind::io) throw;
    log.warning("GEMM algorithms are not stored, so another run may choose other algorithms: ", error.what());
  }
}

/// On rank 0, reads the file, measures GEMMs that it lacks, and writes the file.
std::string choose_on_first_rank(Context& ctx, fs::path path, const std::string& from_checkpoint,
                                 const Environment& environment, const Log& log) {
  std::string library;
  ops::describe_product_library(ctx, library);
  if (path.empty()) path = product_cache_path(library, environment);
  ops::ProductAlgorithms kept, known, refused, found;
  std::error_code unreadable;  // an unreadable file is treated as absent; writing it later logs a warning
  if (!path.empty() && fs::exists(path, unreadable))
    kept = read_or_warn(log, cat("the algorithm file '", path.string(), "' is"),
                        [&] { return products_of_text(read_text(path, "the file of algorithms"), library); });
  if (!from_checkpoint.empty())
    known = read_or_warn(log, "the checkpoint's GEMM algorithms are",
                         [&] { return products_of_text(from_checkpoint, library); });
  known.insert(kept.begin(), kept.end());
  ops::use_algorithms(ctx, known, refused);
  if (!refused.empty())
    log.warning("the library refuses ", refused.size(), " stored GEMM algorithms: measuring these GEMMs again");
  ops::search_algorithms(ctx, found);
  for (const auto& [key, algorithm] : found) kept[key] = known[key] = algorithm;
  if (path.empty())
    log.warning("GEMM algorithms are not stored: neither XDG_CACHE_HOME nor HOME is set; set \"algorithm_file\"");
  else if (!found.empty())
    write_or_warn(path, product_text(library, kept), log);
  log.info("GEMM algorithms: ", found.size(), " measured now", path.empty() ? "" : cat(", in '", path.string(), "'"),
           ".");
  return product_text(library, known);
}

}  // namespace

std::string choose_product_algorithms(Runtime& runtime, Communicator& comm, const fs::path& file,
                                      const std::string& from_checkpoint, const Environment& environment,
                                      const Log& log) {
  if (!runtime.device().is_cuda()) return "";
  Context ctx(runtime, runtime.compute_stream());
  std::string text;
  run_on_all_ranks(comm, [&] {
    if (comm.rank() == 0) text = choose_on_first_rank(ctx, file, from_checkpoint, environment, log);
  });
  std::string library;
  ops::describe_product_library(ctx, library);
  library = comm.broadcast(library, 0);
  text = comm.broadcast(text, 0);
  run_on_all_ranks(comm, [&] {
    // If a GPU is of another kind than rank 0's, it may reject algorithms. Its rank then uses the library's
    // default algorithm for these GEMMs.
    ops::ProductAlgorithms refused;
    if (comm.rank() != 0) ops::use_algorithms(ctx, products_of_text(text, library), refused);
  });
  return text;
}

}  // namespace hctr
