#include "formats/reader/followed_set.h"

#include <atomic>

#include "formats/catalog/format_table.h"

namespace hctr {
namespace {

/// Stores the file's own SampleSet in each chunk, so that parsers find the set and keep it alive.
class FollowedCutter : public Cutter {
 public:
  FollowedCutter(std::shared_ptr<SampleSet> of, FilePosition from) : of_(std::move(of)), cutter_(of_->open(0, from)) {}
  bool next(Chunk& chunk) override {
    chunk.set = of_;
    return cutter_->next(chunk);
  }
  std::optional<int64_t> consumed() const override { return cutter_->consumed(); }

 private:
  std::shared_ptr<SampleSet> of_;
  std::unique_ptr<Cutter> cutter_;
};

class FollowedParser : public Parser {
  /// Calls body(parser) with the parser of the chunk's own set, in which the chunk's file has index 0.
  auto as_only_file(Chunk& chunk, const auto& body) {
    if (chunk.set != of_) {
      parser_.reset();
      of_ = chunk.set;
      parser_ = of_->parser();
    }
    const size_t file = std::exchange(chunk.file, 0);
    auto result = body(*parser_);
    chunk.file = file;
    return result;
  }

 public:
  int64_t count(Chunk& chunk) override {
    return as_only_file(chunk, [&](Parser& parser) { return parser.count(chunk); });
  }
  BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) override {
    return as_only_file(chunk, [&](Parser& parser) { return parser.parse_rows(chunk, rows, block); });
  }

 private:
  std::shared_ptr<const SampleSet> of_;
  std::unique_ptr<Parser> parser_;
};

class FollowedSet : public SampleSet {
 public:
  FollowedSet(const DataSection& section, const Source& source, KeyWidth width, const Log& log,
              std::shared_ptr<FileFeed> feed, size_t from)
      : section_(section), source_(source), width_(width), log_(log), feed_(std::move(feed)) {
    source_.num_samples = 0;
    // Whether ranks can share files depends only on the section, so the first file decides for all files. If no file
    // exists yet, each rank parses all rows.
    if (from >= feed_->size()) return;
    const std::unique_ptr<SampleSet> first = open_file(from);
    selects_rows_ = first->can_select_rows();
    counts_records_ = first->counts_records();
  }

  /// Empty, because the list grows. file() returns single paths.
  const std::vector<fs::path>& files() const override { return no_files_; }
  fs::path file(size_t index) const override { return fs::path(source_.path) / feed_->name(index); }
  bool grows() const override { return true; }
  bool wait_for_file(size_t index, const std::atomic<bool>& closed) override {
    return feed_->wait(index, closed).has_value();
  }
  void wake() override { feed_->wake(); }
  int64_t samples() const override { return 0; }
  bool samples_estimated() const override { return true; }
  std::vector<SlotKeyRule> slot_key_rules() const override { return slot_key_rules_; }
  std::unique_ptr<Cutter> open(size_t index, FilePosition from) override {
    std::shared_ptr<SampleSet> set = open_file(index);
    auto cutter = std::make_unique<FollowedCutter>(set, from);
    if (const int bytes = set->key_bytes(); bytes > key_bytes_) key_bytes_ = bytes;
    return cutter;
  }
  std::unique_ptr<Parser> parser() const override { return std::make_unique<FollowedParser>(); }
  int key_bytes() const override { return key_bytes_ == 0 ? 8 : key_bytes_.load(); }
  bool can_select_rows() const override { return selects_rows_; }
  bool counts_records() const override { return counts_records_; }

 private:
  std::unique_ptr<SampleSet> open_file(size_t index) {
    const std::string name = feed_->name(index);
    return in_context([&] { return cat("reading '", name, "', which '", source_.path, "' has named"); },
                      [&] {
                        Source one = source_;
                        one.files = {path_of_arrived(source_.path, name)};
                        auto set = format_type(section_.format).open(section_, one, width_, log_);
                        const std::vector<SlotKeyRule> keys = set->slot_key_rules();
                        expect_slot_key_rules(slot_key_rules_, "the files before", keys, "this file");
                        for (const SlotKeyRule& slot : keys)
                          if (!find_slot_key_rule(slot_key_rules_, slot.column)) slot_key_rules_.push_back(slot);
                        return set;
                      });
  }

  const DataSection section_;
  Source source_;
  const KeyWidth width_;
  const Log log_;
  const std::shared_ptr<FileFeed> feed_;
  const std::vector<fs::path> no_files_;
  std::vector<SlotKeyRule> slot_key_rules_;  // rules of all opened files
  std::atomic<int> key_bytes_ = 0;           // largest key width of the opened files; 0: none opened
  bool selects_rows_ = false, counts_records_ = false;
};

}  // namespace

std::unique_ptr<SampleSet> follow_files(const DataSection& section, const Source& source, KeyWidth width,
                                        const Log& log, std::shared_ptr<FileFeed> feed, size_t from) {
  return std::make_unique<FollowedSet>(section, source, width, log, std::move(feed), from);
}

}  // namespace hctr
