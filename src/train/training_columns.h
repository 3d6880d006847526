// What must be known of the data's columns before they are read: statistics for "standardize", and whether labels
// occur.
#pragma once

#include "train/resume.h"

namespace hctr {

/// The statistics that training needs: those of the checkpoint it goes on from, of the model it starts from, else those
/// of the training data. Called on rank 0. Errors: Error(data) when checkpoint or model lack some; those of reading.
std::vector<ColumnStatistics> training_statistics(const Config&, const ResumePoint* from, const Log&);
/// Collective. Gives every rank those of rank 0, which are looked at there only. Does nothing when the config needs
/// none.
void broadcast_statistics(Communicator&, const std::vector<ColumnStatistics>& of_rank_0, Config&);

/// check_positives(), check_vocabularies() and notes_on_equal_texts() of the training data.
void check_training_columns(const Config&, bool allow_unmatched, const Log&);

}  // namespace hctr
