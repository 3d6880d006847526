#include "score/evaluation_data.h"

#include <set>
#include <string>
#include <vector>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "formats/catalog/first_matches.h"
#include "formats/catalog/format_table.h"
#include "score/batch_reading.h"

namespace hctr {
namespace {

/// Files that are read for both training and evaluation. Empty if the files cannot be listed.
std::vector<std::string> shared_files(const DataSection& data) {
  if (data.eval_source.empty() || data.follow) return {};
  const FormatType& format = format_type(data.format);
  if (!format.files) return data.source == data.eval_source ? std::vector{data.source} : std::vector<std::string>();
  std::vector<std::string> shared;
  try {
    std::set<fs::path> trained;
    for (const fs::path& file : format.files(data.source, Log::silent())) trained.insert(fs::weakly_canonical(file));
    for (const fs::path& file : format.files(data.eval_source, Log::silent()))
      if (trained.contains(fs::weakly_canonical(file))) shared.push_back(file.string());
  } catch (const Error&) {
    return {};  // the data reader reports the error
  }
  return shared;
}

}  // namespace

void note_shared_files(const Config& config, const Log& log) {
  const std::vector<std::string> shared = shared_files(config.data);
  if (shared.empty()) return;
  log.info("note: '", shared.front(), "'", shared.size() == 1 ? " is" : cat(" and ", shared.size() - 1, " more are"),
           " used for both training and evaluation: metrics of training samples say little about other samples.");
}

void check_evaluation_labels(const Config& config, bool allow_unmatched, const Log& log) {
  if (config.data.eval_source.empty()) return;
  check_positives(config.data, evaluation_source(config.data), reader_options(config, 1).key_width, allow_unmatched,
                  log);
}

}  // namespace hctr
