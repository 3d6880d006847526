// Facts about the data's columns that are needed before reading: statistics for "standardize", and which label values
// occur.
#pragma once

#include "train/resume.h"

namespace hctr {

/// The statistics that training needs: from the checkpoint that it resumes from, else from the model that it starts
/// from, else from the training data. Called on rank 0. Errors: Error(data) when checkpoint or model lack some; those
/// of reading.
std::vector<ColumnStatistics> training_statistics(const Config&, const ResumePoint* from, const Log&);
/// Collective. Broadcasts rank 0's statistics; other ranks' arguments are ignored. Does nothing when the config needs
/// none.
void broadcast_statistics(Communicator&, const std::vector<ColumnStatistics>& of_rank_0, Config&);

/// Runs check_positives(), check_vocabularies() and notes_on_equal_texts() on the training data.
void check_training_columns(const Config&, bool allow_unmatched, const Log&);

}  // namespace hctr
