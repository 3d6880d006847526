// feature_spec: the command line of the program that creates, checks and transcodes feature specifications.

#include "core/base/expect.h"
#include "prepare/preprocess/feature_rows.h"
#include "prepare/preprocess/feature_transcode.h"
#include "program/command_line.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  feature_spec describe --features label,age,user,movie --label label --numerical age --categorical user,movie --train a.csv b.csv --test c.csv --out data/feature_spec.yaml
  feature_spec check data/feature_spec.yaml
  feature_spec transcode data/feature_spec.yaml --out binary --half

A specification has the sections feature_spec, source_spec, channel_spec and metadata; docs/data_tools.md describes them.)";

void print_spec(const FeatureSpec& spec) {
  for (const FeatureChannel& channel : spec.channels) {
    print_formatted("%-12s", channel.name.c_str());
    for (const size_t i : channel.features) {
      const FeatureColumn& feature = spec.features[i];
      print_formatted(" %s (%s%s)", feature.name.c_str(), name_of(feature.type).c_str(),
                      feature.cardinality ? cat(", ", *feature.cardinality, " ids").c_str() : "");
    }
    print_formatted("\n");
  }
}

/// Reads every row of every mapping.
void check_rows(const FeatureSpec& spec) {
  for (const FeatureSource& source : spec.sources) {
    std::vector<size_t> all;
    for (const FeatureChunk& chunk : source.chunks) all.insert(all.end(), chunk.features.begin(), chunk.features.end());
    FeatureRows rows(spec, source.name, all);
    const int64_t done =
        rows.for_each_block(show_progress_line, cat("reading ", source.name), [](const FeatureBlock&) {});
    print_formatted("%-12s %lld rows in %zu chunks: OK\n", source.name.c_str(), static_cast<long long>(done),
                    source.chunks.size());
  }
}

int main_of(int argc, char** argv) {
  DescribeOptions describe;
  TranscodeOptions transcode;
  std::string spec, out, folder;
  std::vector<std::string> train, test;
  CommandLine app("feature_spec", "Feature specifications: the columns of a data set, their files, and their roles.",
                  kExamples);

  CommandLine describing = app.add_subcommand("describe", "writes a specification for CSV files without a header");
  describing.add_option("--features", describe.features, "names of the columns, in order").comma_separated().required();
  describing.add_option("--label", describe.labels, "the label columns").comma_separated().required();
  describing.add_option("--numerical", describe.numerical, "the dense columns").comma_separated();
  describing.add_option("--categorical", describe.categorical, "the id columns, starting at 0")
      .comma_separated()
      .required();
  describing.add_option("--train", train, "files of the mapping train").required();
  describing.add_option("--test", test, "files of the mapping test");
  describing.add_option("--out", out, "the specification; files are named relative to its folder").required();

  CommandLine checking = app.add_subcommand("check", "checks a specification and every row of its files");
  checking.add_option("spec", spec, "the specification").required();

  CommandLine transcoding =
      app.add_subcommand("transcode", "writes all mappings as split_binary, and the new specification");
  transcoding.add_option("spec", spec, "the specification").required();
  transcoding.add_option("--out", folder, "folder for feature_spec.yaml and the mappings").required();
  transcoding.add_flag("--half", transcode.half_numerical, "dense values as float16, for NVIDIA's DLRM");
  transcoding.add_flag("--force", transcode.force, "overwrite an existing result");

  return run_tool(app, argc, argv, [&] {
    if (describing.parsed()) {
      describe.out = out;
      describe.progress = show_progress_line;
      describe.train.assign(train.begin(), train.end());
      describe.test.assign(test.begin(), test.end());
      print_spec(describe_features(describe));
    } else if (checking.parsed()) {
      const FeatureSpec read = read_feature_spec(spec);
      print_spec(read);
      check_rows(read);
    } else {
      transcode.folder = folder;
      transcode.progress = show_progress_line;
      transcode.spec = spec;
      print_spec(transcode_features(read_feature_spec(spec), transcode));
    }
  });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
