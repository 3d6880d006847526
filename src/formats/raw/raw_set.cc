#include "formats/raw/raw_set.h"

#include <bit>
#include <numeric>

#include "core/base/expect.h"
#include "formats/data/norm_record.h"
#include "formats/data/read_records.h"
#include "formats/data/section_checks.h"
#include "formats/io/byte_file.h"
#include "formats/io/set_files.h"

namespace hctr {
namespace {

constexpr int64_t kRawPage = 4096;
constexpr int64_t kRawChunkBytes = 256 << 10;  // bytes and samples of a chunk fit the L2 cache together

/// Checks `float_label_dense` against the first labels. An integer read as float is tiny, and a float read as integer
/// is huge.
void check_kind(const RawShape& shape, const ByteFile& file, int64_t records) {
  const int64_t checked = std::min<int64_t>(records, 100);
  std::vector<std::byte> bytes(static_cast<size_t>(checked * shape.record()));
  file.read_at(0, bytes.data(), bytes.size());
  for (int64_t r = 0; r < checked; ++r)
    for (int64_t i = 0; i < shape.label_dim; ++i) {
      const auto bits = load<uint32_t>(bytes.data() + r * shape.record() + 4 * i);
      const uint32_t magnitude = bits & 0x7fffffffu;
      const bool as_float = magnitude >= 0x30000000u && magnitude < 0x7f800000u,
                 as_int = bits != 0 && bits < (1u << 23);
      if (shape.floats ? as_int : as_float)
        throw Error(Kind::data,
                    cat("'", file.path().string(), "': record ", r + 1, " has the label ",
                        shape.floats ? cat(std::bit_cast<float>(bits), " as a float and ", bits, " as an integer")
                                     : cat(bits, " as an integer and ", std::bit_cast<float>(bits), " as a float"),
                        "; is \"float_label_dense\": ", shape.floats ? "true" : "false", " right?"));
    }
}

class RawSet : public SampleSet, public RowMap {
 public:
  RawSet(const DataSection& section, const Source& source, KeyWidth width, const Log& log)
      : policy_(section.bad_records),
        files_(source.files.empty() ? raw_files(source.path, log) : source.files),
        shape_(section, 4) {
    std::vector<ByteFile> open;
    int64_t bytes = 0;
    for (const fs::path& file : files_) bytes += open.emplace_back(file).size();
    // Keys have 32 bits. They have 64 bits if `width` is i64 and the files have exactly the size of num_samples records
    // with such keys.
    if (const RawShape wide(section, 8);
        width == KeyWidth::i64 && source.num_samples > 0 && bytes == source.num_samples * wide.record())
      shape_ = wide;
    for (size_t f = 0; f < files_.size(); ++f) {
      int64_t records = raw_records(shape_, files_[f], open[f].size());
      if (source.num_samples > 0)
        records = std::min(records, source.num_samples - samples_);  // records beyond num_samples are ignored
      samples_ += records;
      records_.push_back(records);
    }
    if (samples_ < source.num_samples)
      throw Error(Kind::data, cat("'", source.path, "' holds ", samples_, " records of ", shape_.record(),
                                  " bytes, but the Data layer expects ", source.num_samples,
                                  " (\"num_samples\" and \"eval_num_samples\")"));
    expect_records(samples_, source);
    check_kind(shape_, open[0], records_[0]);
  }

  const std::vector<fs::path>& files() const override { return files_; }
  int64_t samples() const override { return samples_; }

  std::unique_ptr<Cutter> open(size_t file, FilePosition from) override {
    struct RawCutter : Cutter {
      bool next(Chunk& chunk) override {
        chunk.begin = {.record = at, .offset = at * record};
        chunk.records = std::min(most, records - at);
        chunk.bytes = chunk.records * record;
        at += chunk.records;
        return chunk.records > 0;
      }
      int64_t at = 0, records = 0, record = 0, most = 0;
    };
    auto cutter = std::make_unique<RawCutter>();
    cutter->at = from.record;
    cutter->records = records_[file];
    cutter->record = shape_.record();
    cutter->most = chunk_records();
    return cutter;
  }

  std::unique_ptr<Parser> parser() const override {
    struct RawParser : Parser {
      explicit RawParser(const RawSet& of) : set(of) {}
      BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) override {
        const fs::path& path = set.files_[chunk.file];
        if (!file || file->path() != path) file.emplace(path);
        const int64_t count = rows.count(chunk.records);
        const int64_t record = set.shape_.record();
        if (rows.some()) {
          read_records([&](int64_t at, std::byte* to, size_t bytes) { file->read_at(at, to, bytes); },
                       chunk.begin.offset, record, rows.spans(), chunk.buffer);
        } else {
          const auto bytes = static_cast<size_t>(chunk.records * record);
          if (chunk.buffer.size() < bytes) chunk.buffer.resize(bytes);
          file->read_at(chunk.begin.offset, chunk.buffer.data(), bytes);
        }
        const auto where = [&](int64_t i) { return set.name_of(chunk.file, chunk.begin.record + rows.row(i)); };
        BadRecords bad = parse_raw(set.shape_, {chunk.buffer.data(), count, where}, set.policy_, scratch, block);
        for (BadRecord& one : bad.records) {
          const int64_t row = rows.row(one.record);
          one.file = path.string();
          one.offset = chunk.begin.offset + row * record;
          one.record = chunk.begin.record + row + 1;
        }
        return bad;
      }
      const RawSet& set;
      std::optional<ByteFile> file;  // the most recently read file
      RawScratch scratch;
    };
    return std::make_unique<RawParser>(*this);
  }
  int key_bytes() const override {
    // stored keys are below 2^31; with an offset up to 2^31 they stay below 2^32
    constexpr int64_t kMostSum = int64_t{1} << 31;
    return shape_.key_bytes == 4 && (shape_.offsets.empty() || shape_.offsets.back() <= kMostSum) ? 4 : 8;
  }
  bool find_records(Chunk& chunk) const override {
    chunk.begins.resize(static_cast<size_t>(chunk.records) + 1);
    for (size_t r = 0; r < chunk.begins.size(); ++r)
      chunk.begins[r] = static_cast<uint32_t>(static_cast<int64_t>(r) * shape_.record());
    return true;
  }
  bool can_select_rows() const override { return policy_ != BadRecordPolicy::skip; }
  bool can_select_single_rows() const override { return true; }
  std::optional<int64_t> exact_samples() const override { return samples_; }
  const RowMap* row_map() const override { return policy_ == BadRecordPolicy::skip ? nullptr : this; }

  int64_t records(size_t file) const override { return records_[file]; }
  FilePosition position(size_t, int64_t record) const override {
    return {.record = record, .offset = record * shape_.record()};
  }
  int64_t max_rows() const override { return chunk_records(); }
  bool narrow() const override { return key_bytes() == 4; }
  std::unique_ptr<RowParser> row_parser() const override {
    struct RawRowParser : RowParser {
      explicit RawRowParser(const RawSet& of)
          : set(of), memory(static_cast<size_t>(of.chunk_records() * of.shape_.record()) + 2 * kRawPage) {}
      void parse(size_t in, int64_t first, int64_t count, const OneHotRows& to) override {
        const fs::path& path = set.files_[in];
        if (!file || file->path() != path) file.emplace(path);
        const int64_t offset = first * set.shape_.record();
        const auto page = reinterpret_cast<uintptr_t>(memory.data() + kRawPage - 1) / kRawPage * kRawPage;
        auto* bytes =
            // same page offset as in the page cache, which makes the copy a quarter faster
            reinterpret_cast<std::byte*>(page) + offset % kRawPage;
        file->read_at(offset, bytes, static_cast<size_t>(count * set.shape_.record()));
        parse_raw_rows(set.shape_, {bytes, count, [&](int64_t i) { return set.name_of(in, first + i); }}, to);
      }
      const RawSet& set;
      std::vector<std::byte> memory;
      std::optional<ByteFile> file;  // the most recently read file
    };
    return std::make_unique<RawRowParser>(*this);
  }

 private:
  int64_t chunk_records() const { return std::max<int64_t>(kRawChunkBytes / shape_.record(), 1); }
  std::string name_of(size_t file, int64_t record) const {
    return cat("'", files_[file].string(), "': record ", record + 1, " of ", records_[file], ", at byte ",
               record * shape_.record());
  }

  std::optional<BadRecordPolicy> policy_;
  std::vector<fs::path> files_;
  RawShape shape_;
  std::vector<int64_t> records_;  // number of records to read from each file
  int64_t samples_ = 0;
};

void check_raw_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  check_slot_sizes(section, pointer, problems);
  for (size_t i = 0; i < section.sparse.size(); ++i)
    if (const SparseInput& input = section.sparse[i]; input.max_keys() < input.slot_num)
      problems.error(cat(pointer, "/sparse/", i), cat("Raw data has one key in each slot, ", input.slot_num,
                                                      " in total; the limits allow only ", input.max_keys()));
}

}  // namespace

RawShape::RawShape(const DataSection& section, int width)
    : label_dim(section.label.label_dim),
      dense_dim(section.dense.dense_dim),
      slots(section.slots()),
      key_bytes(width),
      floats(section.float_label_dense),
      offsets(section.slot_size_array.size()) {
  std::exclusive_scan(section.slot_size_array.begin(), section.slot_size_array.end(), offsets.begin(), int64_t{0});
}

int64_t raw_records(const RawShape& shape, const fs::path& file, int64_t bytes) {
  if (bytes % shape.record() != 0)
    throw Error(Kind::data, cat("'", file.string(), "' has ", bytes, " bytes: ", bytes / shape.record(), " records of ",
                                shape.record(), " bytes (", shape.label_dim, " label, ", shape.dense_dim, " dense and ",
                                shape.slots, " keys) and ", bytes % shape.record(),
                                " more bytes; is the file truncated, or are the Data layer's dimensions wrong?"));
  return bytes / shape.record();
}

std::unique_ptr<SampleSet> open_raw_set(const DataSection& section, const Source& source, KeyWidth width,
                                        const Log& log) {
  return std::make_unique<RawSet>(section, source, width, log);
}

FormatType raw_format() {
  return {.format = kRawFormat,
          .aliases = {"RawAsync"},
          .source_text = "the path of a data file, of a file list or of a folder",
          .files = [](const fs::path& source, const Log& log) { return raw_files(source, log); },
          .check = check_raw_section,
          .open = open_raw_set};
}

}  // namespace hctr
