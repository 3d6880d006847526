#include "prepare/init/init_report.h"

#include "core/base/files.h"
#include "prepare/init/guess_words.h"

namespace hctr {
namespace {

std::string delimiter_words(const std::string& delimiter) {
  if (delimiter == ",") return "commas";
  if (delimiter == "\t") return "tabs";
  if (delimiter == ";") return "semicolons";
  if (delimiter == " ") return "blanks";
  return cat("'", delimiter, "'");
}

}  // namespace

std::vector<std::string> init_report(const InitPlan& plan, const TablePass& pass, const InitOptions& options) {
  std::vector<std::string> report;
  const auto say = [&](const std::string& line) { report.push_back(line); };
  if (plan.layout)
    say(cat(options.data, ": cells between ", delimiter_words(plan.layout->delimiter),
            plan.layout->header ? ", names in the first line" : ", no header: columns are named by their numbers",
            plan.layout->grammar.trim ? ", blanks around cells are dropped" : "", ", ", pass.columns.size(),
            " columns"));
  else
    say(cat(options.data, ": Parquet, ", pass.columns.size(), " columns",
            plan.trim ? ", blanks around texts are dropped" : ""));
  if (plan.number_format) say(cat("numbers: written as ", word_of(*plan.number_format)));
  if (!plan.missing.empty()) {
    std::string marks;
    for (const std::string& mark : plan.missing) marks += cat(marks.empty() ? "" : ", ", "'", mark, "'");
    say(cat("missing values: ", !plan.layout ? "nulls" : "empty cells", " and ", marks));
  }
  say(cat("label ", plan.label.column, ": ", plan.label.why));
  if (plan.layout && !plan.layout->added.empty()) {
    std::string names;
    for (const std::string& name : plan.layout->added) names += cat(names.empty() ? "" : ", ", name);
    say(cat("partitions: ", names, plan.layout->added.size() == 1 ? " is a column too" : " are columns too"));
  }
  for (const ColumnGuess& guess : plan.columns) say(cat("  ", guess.name, ": ", guess.why));
  if (plan.history) say(cat("history ", plan.columns[*plan.history].name, ", item ", plan.columns[*plan.item].name));
  const char* const skipped = options.eval.empty() ? "omitted" : "skipped in training";
  if (pass.bad_rows > 0) say(cat(pass.bad_rows, " bad rows are ", skipped, ": ", pass.first_bad));
  if (pass.without_label > 0) say(cat(pass.without_label, " rows without a label are ", skipped));
  if (pass.eval_bad_rows > 0) say(cat(pass.eval_bad_rows, " bad evaluation rows are skipped: ", pass.first_bad_eval));
  if (pass.eval_without_label > 0) say(cat(pass.eval_without_label, " evaluation rows without a label are skipped"));
  if (options.eval.empty())
    say(cat("rows: ", pass.train_rows, " to train on in ", plan.train, ", ", pass.eval_rows, " to evaluate on in ",
            plan.eval,
            pass.held_out_by_number ? "; split by a hash of each row's number, since many rows have equal features"
                                    : "; split by a hash of each row's features, without the label"));
  else
    say(cat("rows: ", pass.train_rows, " to train on; ", options.eval, " to evaluate on"));
  if (!options.eval.empty() && fs::equivalent(options.eval, options.data))
    say("note: the evaluation rows are also the training rows: metrics of these rows say little about other rows; "
        "omit --eval to hold out a tenth of the rows");
  const InitSchedule schedule = schedule_of(plan);
  say(cat("model: ", name_of(plan.model), ", at most ", schedule.epochs, schedule.epochs == 1 ? " pass" : " passes",
          " in batches of ", schedule.batch, "; the model of the best evaluation is kept"));
  say(cat("next: huge_ctr --train ", options.out.empty() ? "CONFIG" : quoted_word(options.out)));
  return report;
}

}  // namespace hctr
