#include "app/init_command.h"

#include "core/base/expect.h"
#include "program/program_surroundings.h"
#include "program/standard_streams.h"
#include "program/terminal.h"

namespace hctr {

InitCommand::InitCommand(CommandLine& app) {
  app.add_option("--init", options_.data,
                 "Inspect the rows of a table, text or Parquet, and write a config that trains on them")
      .type_name("DATA");
  app.add_option("--label", options_.label,
                 "The column to predict, by name; in a file without a header by number, "
                 "starting at 1")
      .type_name("COLUMN");
  app.add_option("--positive", positive_,
                 "The label's positive value; if the label has more than two different numbers, the lowest positive "
                 "number")
      .type_name("VALUE");
  app.add_option("--leave-out", options_.leave_out,
                 "Columns to ignore, such as columns that reveal the label; separate several with commas")
      .type_name("COLUMN")
      .comma_separated();
  const auto add_role = [&](const char* name, std::vector<std::string>& columns, const char* text) {
    app.add_option(name, columns, text).type_name("COLUMN").comma_separated();
  };
  add_role(
      "--category", options_.categories,
      "Columns whose values are categories, such as ids, even if they look like numbers; separate several with commas");
  add_role("--number", options_.numbers, "Columns whose values are numbers, even if they look like ids");
  add_role("--list", options_.lists, "Columns whose cells hold several values");
  app.add_option("--number-format", number_format_,
                 "The table's number format, written as an example number: 1,234.5 or 1.234,5; needed if a column is "
                 "ambiguous")
      .type_name("FORMAT");
  app.add_word("--template", options_.model,
               {{template_word(InitModel::wide_deep), InitModel::wide_deep},
                {template_word(InitModel::deepfm), InitModel::deepfm},
                {template_word(InitModel::dcn), InitModel::dcn},
                {template_word(InitModel::dlrm), InitModel::dlrm},
                {template_word(InitModel::din), InitModel::din}},
               "The model; default: wdl");
}

int InitCommand::run(const std::string& eval, const std::string& out) {
  if (options_.label.empty())
    throw Error(Kind::usage, cat("--init needs --label COLUMN: the column of ", options_.data, " to predict"));
  if (!positive_.empty()) options_.positive = positive_;
  if (!number_format_.empty()) options_.number_format = number_format_of(number_format_);
  const Surroundings around = program_surroundings();
  options_.log = around.log;
  options_.progress = around.progress;
  options_.eval = eval;
  options_.out = out == "-" ? "" : out;
  const auto write_config = [](const std::string& config) {
    print_json(config);
    flush_standard_output();
  };
  const InitResult result = init(options_, options_.out.empty() ? WriteConfig(write_config) : WriteConfig());
  for (const std::string& line : result.report) print_note(line + "\n");
  return 0;
}

}  // namespace hctr
