#include "prepare/preprocess/feature_transcode.h"

#include <algorithm>
#include <cmath>

#include "config/problems.h"
#include "core/base/expect.h"
#include "core/base/file_lock.h"
#include "core/base/half.h"
#include "core/base/input_files.h"
#include "prepare/preprocess/feature_rows.h"
#include "prepare/write/record_writer.h"

namespace hctr {
namespace {

std::vector<size_t> all_features(const FeatureSource& source) {
  std::vector<size_t> all;
  for (const FeatureChunk& chunk : source.chunks) all.insert(all.end(), chunk.features.begin(), chunk.features.end());
  return all;
}

template <class T>
void append_value(std::vector<std::byte>& bytes, T value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

void put_value(std::vector<std::byte>& bytes, FeatureType type, const FeatureValues& values, size_t row) {
  switch (type) {
    case FeatureType::boolean:
    case FeatureType::i8:
    case FeatureType::u8:
      return append_value(bytes, static_cast<uint8_t>(values.wholes[row]));
    case FeatureType::i16:
    case FeatureType::u16:
      return append_value(bytes, static_cast<uint16_t>(values.wholes[row]));
    case FeatureType::i32:
    case FeatureType::u32:
      return append_value(bytes, static_cast<uint32_t>(values.wholes[row]));
    case FeatureType::i64:
    case FeatureType::u64:
      return append_value(bytes, values.wholes[row]);
    case FeatureType::f16:
      return append_value(bytes, Half(static_cast<float>(values.reals[row])));
    case FeatureType::f32:
      return append_value(bytes, static_cast<float>(values.reals[row]));
    case FeatureType::f64:
      return append_value(bytes, values.reals[row]);
  }
}

/// Errors: Error(data) with the first value that is not a finite float or that the written type cannot represent.
void expect_finite(const FeatureColumn& feature, const FeatureValues& values, int64_t rows_before) {
  const bool half = feature.type == FeatureType::f16;
  for (size_t row = 0; row < values.reals.size(); ++row) {
    const auto value = static_cast<float>(values.reals[row]);
    if (std::isfinite(half ? static_cast<float>(Half(value)) : value)) continue;
    throw Error(Kind::data, cat("row ", rows_before + static_cast<int64_t>(row) + 1, ": feature ", feature.name, ": ",
                                values.reals[row], " is not a finite ", half ? "float16; remove --half" : "float"));
  }
}

/// The chunks of a mapping as split_binary: one for all numerical features, and one for each other feature.
std::vector<FeatureChunk> binary_chunks(const FeatureSpec& spec, const FeatureSource& source, const fs::path& folder) {
  const std::vector<size_t> numerical = spec.channel(kNumericalChannel);
  std::vector<FeatureChunk> chunks;
  if (!numerical.empty())
    chunks.push_back({FeatureChunk::Kind::split_binary, numerical, {folder / source.name / "numerical.bin"}});
  for (const size_t feature : all_features(source)) {
    if (std::find(numerical.begin(), numerical.end(), feature) != numerical.end()) continue;
    const std::string& name = spec.features[feature].name;
    if (name.find('/') != std::string::npos || name == "numerical")
      throw Error(Kind::config, cat("the feature name \"", name,
                                    "\" cannot be a file name; rename the feature in the "
                                    "specification"));
    chunks.push_back({FeatureChunk::Kind::split_binary, {feature}, {folder / source.name / (name + ".bin")}});
  }
  return chunks;
}

void write_source(const FeatureSpec& from, const FeatureSpec& to, const FeatureSource& source,
                  const std::vector<FeatureChunk>& chunks, const ShowProgress& show) {
  const std::vector<size_t> wanted = all_features(source);
  FeatureRows rows(from, source.name, wanted);
  std::vector<size_t> column(from.features.size());
  for (size_t i = 0; i < wanted.size(); ++i) column[wanted[i]] = i;
  std::vector<AtomicFile> files;
  for (const FeatureChunk& chunk : chunks) files.emplace_back(chunk.files[0]);
  std::vector<std::byte> bytes;
  int64_t before = 0;
  rows.for_each_block(show, cat("writing ", source.name), [&](const FeatureBlock& block) {
    const auto where = [&] { return cat("writing mapping ", source.name); };
    in_context(where, [&] {
      for (const size_t feature : wanted) expect_finite(to.features[feature], block.columns[column[feature]], before);
    });
    before += block.rows;
    for (size_t i = 0; i < chunks.size(); ++i) {
      bytes.clear();
      for (size_t row = 0; row < static_cast<size_t>(block.rows); ++row)
        for (const size_t feature : chunks[i].features)
          put_value(bytes, to.features[feature].type, block.columns[column[feature]], row);
      files[i].write(bytes.data(), bytes.size());
    }
  });
  for (AtomicFile& file : files) file.commit();
}

size_t role(const FeatureSpec& spec, const std::string& name, const std::vector<std::string>& names) {
  const auto found = spec.find(name);
  if (!found)
    throw Error(Kind::usage, cat("there is no feature \"", name, "\"", did_you_mean(name, names),
                                 "; --features names the features in the order of the columns"));
  return *found;
}

struct FeatureStatistics {
  bool zeros_and_ones = true;
  int64_t largest = 0;
};

}  // namespace

FeatureSpec describe_features(const DescribeOptions& options) {
  FeatureSpec spec;
  spec.folder = options.out.parent_path();
  for (const std::string& name : options.features) spec.features.push_back({name, FeatureType::f64, {}});
  std::vector<size_t> everything(spec.features.size());
  for (size_t i = 0; i < everything.size(); ++i) everything[i] = i;
  const std::pair<const char*, const std::vector<std::string>*> roles[] = {{kCategoricalChannel, &options.categorical},
                                                                           {kNumericalChannel, &options.numerical},
                                                                           {kLabelChannel, &options.labels}};
  for (const auto& [channel, names] : roles) {
    FeatureChannel& made = spec.channels.emplace_back();
    made.name = channel;
    for (const std::string& name : *names) made.features.push_back(role(spec, name, options.features));
  }
  for (const size_t feature : spec.channel(kCategoricalChannel)) spec.features[feature].type = FeatureType::i64;
  const auto add = [&](const char* name, const std::vector<fs::path>& files) {
    if (!files.empty()) spec.sources.push_back({name, {{FeatureChunk::Kind::csv, everything, files}}});
  };
  add("train", options.train);
  add("test", options.test);

  for (const auto* files : {&options.train, &options.test}) expect_no_input(options.out, "--out", *files);
  std::vector<FeatureStatistics> statistics(spec.features.size());
  for (const FeatureSource& source : spec.sources) {
    FeatureRows rows(spec, source.name, everything);
    rows.for_each_block(options.progress, cat("reading ", source.name), [&](const FeatureBlock& block) {
      for (size_t i = 0; i < statistics.size(); ++i) {
        for (const int64_t value : block.columns[i].wholes) {
          if (value < 0)
            throw Error(Kind::data, cat("category ", spec.features[i].name, " of mapping ", source.name, " holds ",
                                        value, "; ids start at 0: use preprocess to convert other values to ids"));
          statistics[i].largest = std::max(statistics[i].largest, value);
        }
        for (const double value : block.columns[i].reals) statistics[i].zeros_and_ones &= value == 0 || value == 1;
      }
    });
  }
  for (const size_t feature : spec.channel(kNumericalChannel)) spec.features[feature].type = FeatureType::f32;
  for (size_t i = 0; i < statistics.size(); ++i) {
    FeatureColumn& feature = spec.features[i];
    if (is_whole(feature.type)) {
      feature.cardinality = statistics[i].largest + 1;
      feature.type = type_for_ids(*feature.cardinality);
    } else if (feature.type == FeatureType::f64) {
      const auto labels = spec.channel(kLabelChannel);
      feature.type = statistics[i].zeros_and_ones && std::find(labels.begin(), labels.end(), i) != labels.end()
                         ? FeatureType::boolean
                         : FeatureType::f32;
    }
  }
  write_text(options.out, to_yaml(spec));
  return spec;
}

FeatureSpec transcode_features(const FeatureSpec& from, const TranscodeOptions& options) {
  const fs::path file = options.folder / "feature_spec.yaml";
  const FileLock lock(options.folder / "", "the folder");
  std::vector<fs::path> read = {options.spec};
  for (const FeatureSource& source : from.sources)
    for (const FeatureChunk& chunk : source.chunks) read.insert(read.end(), chunk.files.begin(), chunk.files.end());
  for (const FeatureSource& source : from.sources)
    // opens all files, so that errors occur before an older result is removed
    FeatureRows(from, source.name, all_features(source));
  expect_no_input(file, "--out: its file", read);
  for (const FeatureSource& source : from.sources)
    expect_no_input_in(options.folder / source.name, "--out: its file", read,
                       [](const std::string& name) { return name.ends_with(".bin"); });
  remove_older_results({file}, options.force);
  FeatureSpec to = from;
  to.folder = options.folder;
  if (options.half_numerical)
    for (const size_t feature : from.channel(kNumericalChannel)) {
      if (is_whole(from.features[feature].type))
        throw Error(Kind::usage, cat("--half needs floating-point features; the type of "
                                     "\"",
                                     from.features[feature].name, "\" is ", name_of(from.features[feature].type)));
      to.features[feature].type = FeatureType::f16;
    }
  for (FeatureSource& source : to.sources) {
    const std::vector<FeatureChunk> chunks = binary_chunks(from, source, options.folder);
    write_source(from, to, source, chunks, options.progress);
    source.chunks = chunks;
  }
  write_text(file, to_yaml(to));
  return to;
}

}  // namespace hctr
