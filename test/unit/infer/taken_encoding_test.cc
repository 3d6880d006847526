#include "infer/taken_encoding.h"

#include <gtest/gtest.h>

#include "infer/encoding_differences.h"

namespace hctr::test {
namespace {

Json config_of_layer(const std::string& data) {
  return Json::parse(R"({"solver": {"seed": 1}, "layers": [{"type": "Data", )" + data + R"(}, {"type": "ReLU"}]})",
                     "config");
}

const char* const kSaved =
    R"("format": "Csv", "source": "old.csv", "label": {"top": "label"}, "dense": {"top": "dense"},
  "sparse": [{"top": "keys"}], "slot_size_array": [], "csv": {"delimiter": "\t", "slots": [{"columns": ["a"]}]})";

TEST(TakenEncoding, LeavesNoDifference) {
  const Json saved = config_of_layer(kSaved);
  const Json now =
      config_of_layer(R"("format": "Csv", "source": "n", "csv": {"delimiter": ";", "slots": [{"columns": ["b"]}]})");
  const Json mended = with_encoding_of(saved, now);
  EXPECT_EQ(encoding_differences(saved, mended), "");
  EXPECT_NE(mended.text().find(R"("delimiter":";")"), std::string::npos) << mended.text();
}

TEST(TakenEncoding, IsWholeWhereAConfigNamesItsDataAlone) {
  const Json saved = config_of_layer(kSaved);
  const CompletedConfig completed = with_left_out_encoding_of(saved, config_of_layer(R"("source": "new.csv")"));
  EXPECT_EQ(completed.taken, "csv, dense, format, label, sparse");
  EXPECT_EQ(encoding_differences(saved, completed.config), "");
  EXPECT_EQ(*data_layer(completed.config)->find("source")->string(), "new.csv");
  EXPECT_EQ(completed.config.find("layers")->array()->size(), 2);
  const Json of_evaluation = with_left_out_encoding_of(saved, config_of_layer(R"("eval_source": "new.csv")")).config;
  EXPECT_EQ(*data_layer(of_evaluation)->find("source")->string(), "old.csv") << "has to be there";
}

TEST(TakenEncoding, IsTheSectionThatAConfigOfTheSameFormatLeavesOut) {
  const Json saved = config_of_layer(kSaved);
  const CompletedConfig completed = with_left_out_encoding_of(
      saved,
      config_of_layer(R"("format": "Csv", "sparse": [{"top": "keys"}], "csv": {"slots": [{"columns": ["b"]}]})"));
  EXPECT_EQ(completed.taken, "dense, label");
  EXPECT_NE(encoding_differences(saved, completed.config), "") << "what the config states is compared";
  EXPECT_EQ(with_left_out_encoding_of(saved, config_of_layer(R"("format": "Parquet")")).taken, "");
  EXPECT_EQ(with_left_out_encoding_of(saved, config_of_layer(R"("sparse": [{"top": "keys"}])")).taken, "")
      << "a layer without format is of Norm";
}

}  // namespace
}  // namespace hctr::test
