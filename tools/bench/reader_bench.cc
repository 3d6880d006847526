#include "reader_bench.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <chrono>
#include <ctime>

#include "core/base/expect.h"
#include "core/base/half.h"
#include "core/base/random.h"
#include "core/device/buffer.h"
#include "formats/features/feature_set.h"
#include "formats/features/feature_spec.h"
#include "formats/io/byte_file.h"
#include "formats/norm/norm_set.h"
#include "formats/parquet/parquet_file.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "formats/reader/reader.h"
#include "formats/text/criteo_set.h"
#include "formats/text/csv_set.h"
#include "infer/load_config.h"
#include "prepare/preprocess/criteo_convert.h"
#include "prepare/write/parquet_writer.h"
#include "program/program_surroundings.h"
#include "reader_serial.h"
#include "timing.h"

namespace hctr::bench {
namespace {

using Clock = std::chrono::steady_clock;
struct Folder {
  Folder() : path(fs::temp_directory_path() / cat("hctr_bench_", ::getpid())) { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

/// A row in Criteo's style: small and large integers, categories of eight hexadecimal digits.
struct PlainRow {
  int32_t label;
  std::array<int32_t, 13> integers;
  std::array<uint32_t, 26> categories;
};

PlainRow row_of(int64_t i) {
  uint64_t draw = mix64(static_cast<uint64_t>(i));
  PlainRow row{.label = draw % 4 == 0, .integers = {}, .categories = {}};
  for (int32_t& value : row.integers) {
    draw = mix64(draw);
    value = static_cast<int32_t>((draw >> 32) & ((1u << draw % 16) - 1));
  }
  for (uint32_t& value : row.categories) {
    draw = mix64(draw);
    value = static_cast<uint32_t>(mix64(draw % 100000));
  }
  return row;
}

std::string text_of(int64_t rows) {
  std::string text;
  char cell[16];
  for (int64_t i = 0; i < rows; ++i) {
    const PlainRow row = row_of(i);
    text += row.label ? '1' : '0';
    for (const int32_t value : row.integers)
      text.append(cell, static_cast<size_t>(std::snprintf(cell, sizeof cell, "\t%d", value)));
    for (const uint32_t value : row.categories)
      text.append(cell, static_cast<size_t>(std::snprintf(cell, sizeof cell, "\t%08x", value)));
    text += '\n';
  }
  return text;
}

/// Returns rows as Raw bytes. `floats`: label and dense values are float32; otherwise they are int32, and the reader
/// takes their logarithms.
std::string raw_of(int64_t rows, bool floats) {
  std::string bytes;
  const auto put = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto put_number = [&](int32_t value) { floats ? put(static_cast<float>(value)) : put(value); };
  for (int64_t i = 0; i < rows; ++i) {
    const PlainRow row = row_of(i);
    put_number(row.label);
    for (const int32_t value : row.integers) put_number(value);
    for (const uint32_t value : row.categories) put(static_cast<int32_t>(value >> 1));
  }
  return bytes;
}

/// Writes one file, with label and integers as float32, and categories as int64.
void write_parquet(const fs::path& folder, int64_t rows) {
  ParquetStyle style{{.label_dim = 1, .dense_dim = 13, .slots = 26, .check = Check::none, .key_bytes = 8},
                     {"label"},
                     {},
                     {},
                     std::vector<bool>(26)};
  for (int c = 1; c <= 13; ++c) style.dense.push_back(cat("I", c));
  for (int c = 1; c <= 26; ++c) style.slots.push_back(cat("C", c));
  ParquetSetWriter writer(folder, folder / "_file_list.txt", style,
                          [](int64_t) { return std::string("rows.parquet"); });
  writer.next_file();
  std::vector<std::byte> bytes;
  const std::vector<int32_t> nnz(26, 1);
  for (int64_t i = 0; i < rows; ++i) {
    const PlainRow row = row_of(i);
    const float label = static_cast<float>(row.label);
    const std::vector<float> dense(row.integers.begin(), row.integers.end());
    const std::vector<int64_t> keys(row.categories.begin(), row.categories.end());
    bytes.clear();
    append_norm_record(style.record, {&label, 1}, dense, nnz, keys, bytes);
    writer.append(bytes, 1);
  }
  writer.finish();
}

void write_packed(const fs::path& path, const std::string& text) {
  const gzFile gz = ::gzopen((path.string() + ".gz").c_str(), "wb1");
  ::gzwrite(gz, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(gz);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  write_text(path.string() + ".zst", packed);
}

DataSection section_of(DataFormat format, const fs::path& source) {
  DataSection section;
  section.format = format;
  section.source = source.string();
  section.label = {"label", 1};
  section.dense = {"dense", 13};
  SparseInput input;
  input.top = "keys";
  input.slot_num = input.max_feature_num_per_sample.emplace(26);
  input.max_nnz = 1;
  section.sparse = {input};
  return section;
}

DataSection csv_section(const fs::path& source, bool quotes) {
  DataSection section = section_of(kCsvFormat, source);
  CsvOptions& csv = section.options.edit<CsvOptions>();
  csv.delimiter = "\t";
  csv.quote = quotes ? "\"" : "";
  csv.header = false;
  csv.labels = {"1"};
  csv.dense = {{.columns = {}, .transform = DenseTransform::log, .mean = {}, .std = {}}};
  csv.slots = {{.columns = {}, .vocabulary = "", .separator = "", .fallback = {}}};
  for (int c = 2; c <= 14; ++c) csv.dense[0].columns.push_back(std::to_string(c));
  for (int c = 15; c <= 40; ++c) csv.slots[0].columns.push_back(std::to_string(c));
  return section;
}

/// The bytes of the data files of a set.
int64_t bytes_of(const DataSection& section) {
  const auto set = format_type(section.format).open(section, training_source(section), KeyWidth::detect, Log::silent());
  int64_t bytes = 0;
  for (const fs::path& file : set->files()) bytes += static_cast<int64_t>(fs::file_size(file));
  return bytes;
}

/// Writes the rows in the format split_binary of NVIDIA's DLRM: one file for all dense values as float16, and one for
/// the label and for each category, with four bytes per value. Returns the bytes written.
int64_t write_feature_spec(const fs::path& folder, int64_t rows) {
  std::array<std::string, 28> columns;  // label, numbers, categories
  const auto put = [](std::string& to, auto value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (int64_t i = 0; i < rows; ++i) {
    const PlainRow row = row_of(i);
    put(columns[0], static_cast<uint8_t>(row.label));
    for (const int32_t value : row.integers) put(columns[1], Half(static_cast<float>(value)));
    for (size_t c = 0; c < 26; ++c) put(columns[2 + c], static_cast<int32_t>(row.categories[c] >> 1));
  }
  FeatureSpec spec;
  spec.folder = folder;
  spec.sources = {{"train", {}}};
  spec.channels = {{kLabelChannel, {}}, {kNumericalChannel, {}}, {kCategoricalChannel, {}}};
  const auto add = [&](size_t channel, const std::string& name, FeatureType type) {
    spec.channels[channel].features.push_back(spec.features.size());
    spec.features.push_back({name, type, {}});
    if (type == FeatureType::i32) spec.features.back().cardinality = 0x7fffffff;
  };
  add(0, "label", FeatureType::boolean);
  for (int i = 0; i < 13; ++i) add(1, cat("I", i), FeatureType::f16);
  for (int i = 0; i < 26; ++i) add(2, cat("C", i), FeatureType::i32);
  int64_t bytes = 0;
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<size_t> features = c == 1 ? spec.channels[1].features : std::vector<size_t>{c == 0 ? 0 : 12 + c};
    spec.sources[0].chunks.push_back(
        {FeatureChunk::Kind::split_binary, std::move(features), {folder / cat("column", c, ".bin")}});
    write_text(folder / cat("column", c, ".bin"), columns[c]);
    bytes += static_cast<int64_t>(columns[c].size());
  }
  write_text(folder / "spec.yaml", to_yaml(spec));
  return bytes;
}

/// Reads a set several times. `content`: the set's bytes, if they differ from the size of its files; otherwise 0.
void bench_one(const std::string& name, const DataSection& section, ReaderCase one, int64_t content, Report& report) {
  if (name.find(one.only) == name.npos) return;
  const BatchLayout layout(batch_shape(section, samples_of_rank(one.batch, one.ranks)));
  std::vector<Buffer> memory;
  std::vector<std::byte*> slots;
  for (int i = 0; i < 3; ++i) slots.push_back(memory.emplace_back(Device{}, layout.bytes).data());
  Reader reader(section, training_source(section), layout, slots,
                {.batch = one.batch,
                 .workers = one.threads,
                 .repeat = false,
                 .rank = 0,
                 .ranks = one.ranks,
                 .shuffle = one.shuffle},
                Log::silent());
  std::vector<double> seconds, busy;
  for (int pass = 0; pass <= one.passes; ++pass) {  // the first pass warms up
    const auto start = Clock::now();
    const double cpu_start = cpu_seconds();
    reader.reset();
    int64_t rows = 0;
    while (const auto slot = reader.next()) {
      rows += BatchView(layout, slots[static_cast<size_t>(*slot)]).state->global_samples;
      reader.release(*slot);
    }
    if (!one.config.empty() && pass == 0) one.rows = rows;
    HCTR_EXPECT(rows == one.rows, name, " gave ", rows, " rows of ", one.rows);
    if (pass == 0) continue;
    seconds.push_back(seconds_since(start));
    busy.push_back(cpu_seconds() - cpu_start);
  }
  const int64_t bytes = content > 0 ? content : bytes_of(section);
  const double took = median(seconds);
  const std::string where = cat(one.threads, one.threads == 1 ? " thread" : " threads");
  report.add(cat("read ", name), where, static_cast<double>(bytes) / took / 1e9, "GB/s");
  report.add(cat("read ", name), where, static_cast<double>(one.rows) / took / 1e6, "M samples/s");
  report.add(cat("read ", name), "per second of one core", static_cast<double>(bytes) / median(busy) / 1e9,
             "GB");  // per CPU second, which is comparable even if other programs use the machine
  if (one.serial) bench_serial(name, section, one, bytes, report);
}

/// Measures the rate at which one thread copies a file from the page cache.
void bench_page_cache(const fs::path& path, Report& report) {
  std::vector<std::byte> buffer(256 << 10);
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    ByteFile file(path);
    while (file.read(buffer.data(), buffer.size()) > 0) continue;
    seconds.push_back(seconds_since(start));
  }
  report.add("copy from the page cache", "1 thread", static_cast<double>(fs::file_size(path)) / median(seconds) / 1e9,
             "GB/s");
}

}  // namespace

void bench_reader(const ReaderCase& one, Report& report) {
  if (!one.config.empty()) {
    const Config config = load_config(one.config, false, log_to_stderr(), {.environment = system_environment()});
    return bench_one(one.config, config.data, one, 0, report);
  }
  const Folder folder;
  const fs::path tsv = folder.path / "rows.tsv";
  const std::string text = text_of(one.rows);
  const auto text_bytes = static_cast<int64_t>(text.size());
  write_text(tsv, text);
  write_packed(tsv, text);
  for (const bool floats : {true, false})
    write_text(folder.path / (floats ? "floats.raw" : "integers.raw"), raw_of(one.rows, floats));
  for (const Check check : {Check::sum, Check::none}) {
    CriteoOptions options;
    options.inputs = {tsv.string()};
    options.folder = folder.path / (check == Check::sum ? "sum" : "none");
    options.style.check = check;
    options.rows_per_file = one.rows;
    options.threads = one.threads;
    convert_criteo(options, Log::silent());
  }
  bench_page_cache(tsv, report);
  for (const char* check : {"sum", "none"})
    bench_one(cat("Norm, check ", check), section_of(kNormFormat, folder.path / check / "train.txt"), one, 0, report);
  DataSection raw = section_of(kRawFormat, folder.path / "floats.raw");
  raw.float_label_dense = true;
  bench_one("Raw, floats", raw, one, 0, report);
  bench_one("Raw, integers", section_of(kRawFormat, folder.path / "integers.raw"), one, 0, report);
  DataSection features = section_of(kFeatureFormat, "train");
  features.feature_spec = (folder.path / "spec.yaml").string();
  const int64_t feature_bytes = write_feature_spec(folder.path, one.rows);
  bench_one("FeatureSpec, split_binary", features, one, feature_bytes, report);
  if (const std::string why = why_no_parquet(); why.empty()) {
    constexpr int64_t kDecoded = 4 * (1 + 13) + 8 * 26;  // bytes of a decoded row
    write_parquet(folder.path / "parquet", one.rows);
    bench_one("Parquet, snappy (bytes decoded)", section_of(kParquetFormat, folder.path / "parquet" / "_file_list.txt"),
              one, one.rows * kDecoded, report);
  } else {
    log_to_stderr().info("Parquet was not measured: ", why);
  }
  bench_one("Criteo", section_of(kCriteoFormat, tsv), one, 0, report);
  bench_one("Csv without quotes", csv_section(tsv, false), one, 0, report);
  bench_one("Csv", csv_section(tsv, true), one, 0, report);
  bench_one("Criteo, gzip (bytes of text)", section_of(kCriteoFormat, tsv.string() + ".gz"), one, text_bytes, report);
  bench_one("Criteo, zstd (bytes of text)", section_of(kCriteoFormat, tsv.string() + ".zst"), one, text_bytes, report);
}

}  // namespace hctr::bench
