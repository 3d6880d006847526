// Fuzz entries for feature specifications: the YAML file, and rows of a text file combined with a binary file.
#include "formats/features/feature_cutter.h"
#include "formats/features/feature_parser.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {

void feature_spec(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  try {
    const std::string written = to_yaml(parse_feature_spec(text, "fuzz", "/data"));
    expect(to_yaml(parse_feature_spec(written, "again", "/data")) == written);
  } catch (const Error& error) {
    expect(error.kind() == Kind::config);
  }
}

void feature_rows(Bytes bytes) {
  const uint8_t pick = take(bytes), near = take(bytes);
  const size_t cut = bytes.size() * near / 256;
  const MemoryFile text(bytes.first(cut)), binary(bytes.subspan(cut));
  const FeatureField label{.feature = {"click", pick & 1 ? FeatureType::boolean : FeatureType::f32, {}},
                           .place = 1,
                           .to = FeatureField::To::label};
  const FeatureField ids{.feature = {"user", FeatureType::i32, 10}, .place = 0, .limit = 10, .more = 5};
  const FeatureField number{.feature = {"age", FeatureType::f16, {}}, .place = 0, .to = FeatureField::To::dense};
  const FeatureField small{
      .feature = {"item", pick & 2 ? FeatureType::i8 : FeatureType::u64, {}}, .place = 2, .index = 1};
  FeaturePlan plan{.mapping = "train", .label_dim = 1, .dense_dim = 1, .slots = 2, .groups = {}, .rows = {}};
  plan.groups.push_back({.files = {text.path()}, .width = 3, .rows = {}, .fields = {label, ids}});
  const size_t width = 2 + bytes_of(small.feature.type);
  plan.groups.push_back({.kind = FeatureChunk::Kind::split_binary,
                         .files = {binary.path()},
                         .width = width,
                         .rows = {static_cast<int64_t>((bytes.size() - cut) / width)},
                         .fields = {number, small}});
  tolerate([&] {
    FeatureCutter cutter(plan, 0, pick & 4 ? std::optional<int64_t>(3) : std::nullopt);
    FeatureParser parser(plan, pick & 8 ? BadRecordPolicy::skip : BadRecordPolicy::error);
    Chunk chunk;
    SampleBlock block;
    while (cutter.next(chunk)) {
      const BadRecords bad = parser.parse(chunk, block);
      expect(bad.count + block.rows == chunk.records && (bad.count > 0) == !bad.first.empty());
      RecordShape shape{.label_dim = 1, .dense_dim = 1, .inputs = {{.name = "x", .slots = 2}}};
      expect_whole(block, shape);
      for (int64_t r = 0; r < block.rows; ++r)
        expect(block.keys[static_cast<size_t>(r)] >= 5 && block.keys[static_cast<size_t>(r)] < 15 &&
               block.keys[static_cast<size_t>(block.rows + r)] >= 0);
    }
  });
}

}  // namespace hctr::fuzz
