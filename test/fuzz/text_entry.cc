// Fuzz entry for text formats: parses a text as a whole and in two parts.
#include "formats/text/criteo_set.h"
#include "formats/text/csv_set.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {
namespace {

CsvOptions& csv_of(DataSection& section) { return section.options.edit<CsvOptions>(); }

/// The rows of a parsed text as plain values, one row after another.
struct Parsed {
  std::vector<float> numbers;
  std::vector<std::vector<int64_t>> bags;
  int64_t bad = 0;
  bool failed = false;
};

Parsed parse(const std::string& text, const TextFormat& format, const RowMaker& maker, const RecordShape& shape,
             Parsed parsed = {}) {
  RecordSplitter splitter(format.grammar);
  RowMajor rows(shape);
  SampleBlock block;
  parsed.failed = true;
  tolerate([&] {
    BadRecords bad;
    rows.start(block);
    const TextParsing parsing{format, maker, BadRecordPolicy::skip, [](size_t at) { return std::to_string(at); }};
    parse_text(text, 0, parsing, splitter, rows, bad);
    rows.finish();
    parsed.bad += bad.count;
    std::vector<uint32_t> begins;
    find_records(text.data(), text.size(), format.grammar, splitter, begins);
    expect(static_cast<int64_t>(begins.size()) - 1 == bad.count + block.rows);
    parsed.failed = false;
    expect_whole(block, shape);
  });
  if (parsed.failed) return parsed;
  for (int64_t r = 0; r < block.rows; ++r) {
    parsed.numbers.push_back(block.label[static_cast<size_t>(r)]);
    for (int64_t k = 0; k < shape.dense_dim; ++k)
      parsed.numbers.push_back(block.dense[static_cast<size_t>(r * shape.dense_dim + k)]);
    for (int64_t s = 0; s < shape.slots(); ++s) {
      const auto bag = static_cast<size_t>(s * block.rows + r);
      parsed.bags.emplace_back(block.keys.begin() + block.offsets[bag], block.keys.begin() + block.offsets[bag + 1]);
    }
  }
  return parsed;
}

/// Cuts the text where a cutter would cut. Both parts together must have the same rows as the whole text.
void parse_whole_and_cut(const std::string& text, size_t near, const TextFormat& format, const RowMaker& maker,
                         const RecordShape& shape) {
  const Parsed whole = parse(text, format, maker, shape);
  const size_t cut = end_of_last_record(std::string_view(text).substr(0, near), format.grammar);
  const Parsed first = parse(text.substr(0, cut), format, maker, shape);
  expect(!first.failed);  // the records are complete, so no quote is open
  const Parsed both = parse(text.substr(cut), format, maker, shape, first);
  expect(both.failed == whole.failed);
  if (whole.failed) return;
  expect(both.bad == whole.bad && both.bags == whole.bags && both.numbers == whole.numbers);
}

}  // namespace

void csv_text(Bytes bytes) {
  const uint8_t pick = take(bytes), near = take(bytes);
  const std::string text(bytes.begin(), bytes.end());
  DataSection section = small_section(2, {{2, 2, 3}});
  csv_of(section).header = false;
  csv_of(section).delimiter = pick & 1 ? "\t" : ",";
  csv_of(section).quote = pick & 2 ? "" : "\"";
  csv_of(section).trim = pick & 64;
  if (pick & 128) {
    csv_of(section).delimiter += "a";
    csv_of(section).quote.reset();
  }
  csv_of(section).labels = {"1"};
  csv_of(section).dense = {{.columns = {"2"}, .transform = DenseTransform::log, .mean = {}, .std = {}},
                           {.columns = {"3"}, .mean = {}, .std = {}}};
  SlotColumns slots;
  slots.columns = {"4", "5"};
  slots.keys = pick & 4 ? KeyRule::number : pick & 8 ? KeyRule::hex : KeyRule::hash;
  if (pick & 16) slots.separator = "|";
  if (pick & 32) slots.fallback = "1";
  csv_of(section).slots = {slots};
  const TextFormat format = csv_text_format(section);
  const std::vector<std::string_view> five(5, "1");
  parse_whole_and_cut(text, text.size() * near / 256, format, *format.maker(five, {}), record_shape(section));
}

void criteo_text(Bytes bytes) {
  const uint8_t pick = take(bytes), near = take(bytes);
  const std::string text(bytes.begin(), bytes.end());
  DataSection section;
  section.options.edit<CriteoTextOptions>() = {.wide = static_cast<Wide>(pick % 3),
                                               .integers = static_cast<Integers>(pick / 3 % 3),
                                               .buckets = pick & 64 ? 100 : 0,
                                               .key_bits = pick & 128 ? 32 : 64};
  const CriteoStyle style = criteo_style(section.options.edit<CriteoTextOptions>());
  section =
      small_section(style.dense_dim(),
                    style.wide_keys() > 0
                        ? std::vector<std::array<int64_t, 3>>{{1, 39, 39}, {style.deep_slots(), 1, style.deep_slots()}}
                        : std::vector<std::array<int64_t, 3>>{{style.deep_slots(), 1, style.deep_slots()}});
  section.options.edit<CriteoTextOptions>() = {
      .wide = style.wide, .integers = style.integers, .buckets = style.buckets, .key_bits = style.key_bytes * 8};
  const TextFormat format = criteo_text_format(section);
  parse_whole_and_cut(text, text.size() * near / 256, format, *format.maker({}, {}), record_shape(section));
}

}  // namespace hctr::fuzz
