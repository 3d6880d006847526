// The pass over a text of separated values.
#pragma once

#include "prepare/init/init.h"
#include "prepare/init/table_pass.h"
#include "prepare/init/text_layout.h"

namespace hctr {

/// The first megabyte of a text's content, up to the last line end. Errors: Error(io), Error(data).
std::string start_of_text(const fs::path&);

/// The labels of the first rows of a text.
LabelFacts first_labels(const std::string& start, const TextLayout&, const std::string& label,
                        const std::optional<std::string>& positive);

/// Reads every row once. Writes the rows unchanged to the files of `split`, after the header of the first file. Errors:
/// Error(io); Error(data) with file and line.
TablePass read_text_table(const std::vector<fs::path>& files, const TextLayout&, const InitOptions&,
                          const SplitFiles& split);

/// Reads every row of an evaluation text once. Adds to `pass` the facts that decide whether these rows can be read like
/// the training rows. Errors: Error(io); Error(data) if the layout differs from the training text's; Error(data) with
/// file and line for bad rows.
void read_eval_text(const fs::path&, const TextLayout&, const InitOptions&, TablePass& pass);

/// Checks the first rows of an evaluation text. All columns in `used` must exist. If the positive label is a text,
/// every label must also occur in the training rows (`LabelFacts`). Errors: Error(data), Error(io).
void check_eval_text(const fs::path&, const TextLayout&, const std::vector<std::string>& used,
                     const LabelChoice& choice, const LabelFacts& labels);

}  // namespace hctr
