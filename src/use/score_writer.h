// Writes scores as tab-separated text, comma-separated text or Parquet.
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
  std::vector<std::string> labels;  ///< one per score; empty: the data have no labels
  std::vector<std::string> scores;
  std::vector<std::string> kept;
};

/// Column names for losses with these tops and numbers of scores. One loss: label and score, or label_0, score_0, ...
/// for several scores. Several losses: label_<top>, score_<top>, or label_<top>_0, score_<top>_0, ... for several
/// scores.
ScoreColumns score_columns(const std::vector<std::string>& losses, const std::vector<int64_t>& scores, bool has_labels);

/// Receives a text in pieces, then an empty piece.
using ScoreSink = std::function<void(std::string_view text)>;

/// Used on rank 0. Errors of all members: Error(io).
class ScoreWriter {
 public:
  virtual ~ScoreWriter() = default;
  /// Appends rows. Row numbers also count bad records. A label below -0.5 means "no label": an empty cell, in Parquet a
  /// null.
  virtual void write(const ScoredRows&) = 0;
  /// Completes the file after the last row, and renames it to its final name.
  virtual void finish() = 0;
};

/// Checks the ending of a file name for scores. "-": the text goes to the caller. Errors: Error(usage).
void expect_score_file(const std::string& out);
/// `sink`: receives the text if `out` is "-". Errors: those of expect_score_file(); Error(usage) if two columns have
/// the same name; Error(io).
std::unique_ptr<ScoreWriter> open_scores(const std::string& out, const ScoreColumns&, const ScoreSink& sink = {});

}  // namespace hctr
