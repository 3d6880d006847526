// Facts about data columns that are needed before reading: the statistics for "standardize", and the label values that
// occur.
#pragma once

#include "train/resume.h"

namespace hctr {

/// Call on rank 0. The column statistics that training needs: from the checkpoint of a resumed run, else from the
/// initial model, else from the training data. Errors: Error(data) if the checkpoint or the model lacks statistics;
/// those of reading.
std::vector<ColumnStatistics> training_statistics(const Config&, const ResumePoint* from, const Log&);
/// Collective. Broadcasts rank 0's statistics and ignores other ranks' arguments. Does nothing if the config needs no
/// statistics.
void broadcast_statistics(Communicator&, const std::vector<ColumnStatistics>& of_rank_0, Config&);

/// Runs check_positives(), check_vocabularies() and notes_on_equal_texts() on the training data.
void check_training_columns(const Config&, bool allow_unmatched, const Log&);

}  // namespace hctr
