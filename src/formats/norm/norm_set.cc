#include "formats/norm/norm_set.h"

#include <atomic>

#include "core/base/expect.h"
#include "formats/data/section_checks.h"
#include "formats/io/set_files.h"
#include "formats/norm/norm_cutter.h"
#include "formats/norm/norm_parse.h"

namespace hctr {
namespace {

class NormSet : public SampleSet {
 public:
  NormSet(const DataSection& section, const Source& source, KeyWidth width, const Log& log)
      : demands_(norm_demands(section, width)),
        policy_(section.bad_records),
        files_(source.files.empty() ? norm_files(source.path, log) : source.files),
        infos_(files_.size()) {
    for (const fs::path& file : files_) {
      const NormInfo info = read_norm_header(file, demands_);
      samples_ += info.header.number_of_records;
      sums_ |= info.check == Check::sum;
    }
    expect_records(samples_, source);
  }

  const std::vector<fs::path>& files() const override { return files_; }
  int64_t samples() const override { return samples_; }

  std::unique_ptr<Cutter> open(size_t file, FilePosition from) override {
    // Reads the header once per file. Parsers read infos_ without a lock, because a thread parses only chunks that it
    // has cut itself, and it cuts chunks of a file only after this call.
    if (!infos_[file]) infos_[file] = std::make_shared<const NormInfo>(read_norm_info(files_[file], demands_));
    if (const int bytes = infos_[file]->key_bytes; bytes > key_bytes_) key_bytes_ = bytes;
    return std::make_unique<NormCutter>(infos_[file], from);
  }

  std::unique_ptr<Parser> parser() const override {
    struct NormParser : Parser {
      explicit NormParser(const NormSet& of) : set(of) {}
      int64_t count(Chunk& chunk) override {
        find_norm_records(*set.infos_[chunk.file], chunk);
        return count_norm_rows(*set.infos_[chunk.file], chunk, set.policy_, scratch);
      }
      BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) override {
        // a partial selection needs no search, because count() has found the records
        if (!rows.some()) find_norm_records(*set.infos_[chunk.file], chunk);
        return parse_norm_chunk(*set.infos_[chunk.file], chunk, rows, set.policy_, scratch, block);
      }
      const NormSet& set;
      ParseScratch scratch;
    };
    return std::make_unique<NormParser>(*this);
  }
  int key_bytes() const override { return key_bytes_ == 0 ? 8 : key_bytes_.load(); }
  bool can_select_rows() const override { return policy_ != BadRecordPolicy::skip; }
  bool can_select_single_rows() const override { return true; }
  /// Without a policy, records with a wrong checksum are skipped, so the number of samples is not exact.
  std::optional<int64_t> exact_samples() const override {
    return sums_ && !policy_ ? std::nullopt : std::optional(samples_);
  }

 private:
  NormDemands demands_;
  std::optional<BadRecordPolicy> policy_;
  std::vector<fs::path> files_;
  std::vector<std::shared_ptr<const NormInfo>> infos_;  // headers by file; null: not opened yet
  int64_t samples_ = 0;
  bool sums_ = false;               // some file has checksums
  std::atomic<int> key_bytes_ = 0;  // largest key width of the opened files; 0: none opened
};

void check_norm_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  const auto sizes = static_cast<int64_t>(section.slot_size_array.size());
  if (sizes != 0 && sizes != section.slots())
    problems.warn(pointer + "/slot_size_array", cat("has ", sizes, " numbers for ", section.slots(),
                                                    " slots; Norm data do not need "
                                                    "slot_size_array"));
}

}  // namespace

std::unique_ptr<SampleSet> open_norm_set(const DataSection& section, const Source& source, KeyWidth width,
                                         const Log& log) {
  return std::make_unique<NormSet>(section, source, width, log);
}

FormatType norm_format() {
  return {.format = kNormFormat,
          .source_text = "the path of a file list or of a folder",
          .files = [](const fs::path& source, const Log& log) { return raw_files(source, log); },
          .check = check_norm_section,
          .open = open_norm_set};
}

}  // namespace hctr
