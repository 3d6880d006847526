// Files of scores: tab-separated, comma-separated or Parquet.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "score/scored_rows.h"

namespace hctr {

/// The names of the columns after "row", in their order.
struct ScoreColumns {
  std::vector<std::string> labels;  ///< one for each score; empty: the data have no labels
  std::vector<std::string> scores;
  std::vector<std::string> kept;
};

/// The names for losses with these tops and numbers of scores: label and score; label_0, score_0, ... for several
/// scores of one loss; label_<top>, score_<top>, or with _0, _1, ... after it, for several losses.
ScoreColumns score_columns(const std::vector<std::string>& losses, const std::vector<int64_t>& scores, bool has_labels);

/// Gets a text piece by piece, and an empty one at the end.
using ScoreSink = std::function<void(std::string_view text)>;

/// Used on rank 0. Errors of all members: Error(io).
class ScoreWriter {
 public:
  virtual ~ScoreWriter() = default;
  /// Appends rows, whose numbers count bad records between them too. A label below -0.5 is none: an empty cell, in
  /// Parquet a null.
  virtual void write(const ScoredRows&) = 0;
  /// After the last row: completes the file, which gets its name now.
  virtual void finish() = 0;
};

/// Whether scores can be written there, by the ending of the name; "-": a text goes to the caller. Errors:
/// Error(usage).
void expect_score_file(const std::string& out);
/// `sink`: of "-". Errors: those of expect_score_file(); Error(usage) when two columns have one name; Error(io).
std::unique_ptr<ScoreWriter> open_scores(const std::string& out, const ScoreColumns&, const ScoreSink& sink = {});

}  // namespace hctr
