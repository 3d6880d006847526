#include "infer/model_encoding.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

std::string refusal(const EncodingChange& change, EncodingChoice choice = EncodingChoice::same) {
  return message_of(Kind::config, [&] { expect_encoding(change, "the model 'm'", choice, Log::silent()); });
}
void expect_piece(const std::string& text, const std::string& piece) { EXPECT_NE(text.find(piece), text.npos) << text; }

TEST(ModelEncoding, ADifferenceIsAnErrorThatNamesWhatHelps) {
  const EncodingChange fields{.fields = "/layers/0/csv/hash_seed was 1 and is 2"};
  expect_piece(refusal(fields),
               "differs from the encoding of the model 'm': /layers/0/csv/hash_seed was 1 and is 2. Add --encoding "
               "model");
  expect_piece(refusal({.fields = R"(/layers/0/format was "Csv" and is "Raw")"}),
               "use data in the format of the model");
  expect_piece(refusal({.fields = "/layers/0/csv/hash_seed was 1 and /layers/0/parquet/hash_seed is 2"}),
               "Set the fields to the model's values, or add --encoding config");
  const EncodingChange files{.files = "/layers/0/csv/slots/0/vocabulary was 2 values and is 3 values"};
  expect_piece(refusal(files), "Restore the file with which the model was trained, or add --encoding config");
  expect_piece(refusal(files, EncodingChoice::model), "Restore the file");
  expect_piece(refusal({.fields = fields.fields, .files = files.files}), "and is 2; /layers/0/csv/slots/0/vocabulary");
}

TEST(ModelEncoding, OfTheConfigIsNotedWhereItIsWanted) {
  std::string said;
  const Log log(
      [&](Level level, std::string_view line) { said += cat(level == Level::warning ? "warning " : "", line); });
  expect_encoding({}, "the model 'm'", EncodingChoice::same, log);
  EXPECT_EQ(said, "");
  expect_encoding({.fields = "/a was 1 and is 2", .files = "/b was 3 and is 4"}, "the model 'm'",
                  EncodingChoice::config, log);
  EXPECT_EQ(said,
            "note: the config's encoding differs from the encoding of the model 'm': /a was 1 and is 2; /b was 3 "
            "and is 4.");
}

}  // namespace
}  // namespace hctr::test
