#include "prepare/generate/generate.h"

#include <algorithm>
#include <memory>

#include "config/config_file.h"
#include "core/base/expect.h"
#include "core/base/file_lock.h"
#include "core/base/input_files.h"
#include "core/base/progress.h"
#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "formats/catalog/data_schema.h"
#include "formats/features/feature_set.h"
#include "formats/io/file_list.h"
#include "formats/parquet/parquet_file.h"
#include "prepare/generate/sample_maker.h"
#include "prepare/write/parquet_writer.h"
#include "prepare/write/record_writer.h"

namespace hctr {
namespace {

constexpr int64_t kBlock = 4096;  // number of samples that a thread generates at a time

/// A set to generate: training or evaluation.
struct Part {
  std::string name;
  fs::path list;
  int64_t samples, files;
};

/// The true scores of a set, 9 bytes per label and sample. Kept for the evaluation set only.
struct Truth {
  std::unique_ptr<double[]> probability;
  std::unique_ptr<bool[]> positive;
};

fs::path data_file(const Part& part, const GenerateOptions& options, const std::string& ending, int64_t number) {
  if (options.written_as == WrittenAs::raw) return part.list;
  if (!options.folder.empty()) return options.folder / part.name / cat("gen_", number, ending);
  return part.list.parent_path() / cat(part.list.stem().string(), ".", number, ending);
}

/// Writes a set: a sequence of files, and the list of their names.
class PartWriter {
 public:
  virtual ~PartWriter() = default;
  virtual void next_file(int64_t file, int64_t samples) = 0;
  virtual void write(const std::vector<std::byte>& bytes, int64_t samples) = 0;
  virtual void finish() = 0;
};

class ByteFiles : public PartWriter {
 public:
  ByteFiles(const Part& part, const SampleEncoder& encoder, const GenerateOptions& options)
      : part_(part), encoder_(encoder), options_(options) {}
  void next_file(int64_t file, int64_t samples) override {
    finish_file();
    open_.emplace(data_file(part_, options_, encoder_.ending(), file));
    write(encoder_.start(samples), 0);
  }
  void write(const std::vector<std::byte>& bytes, int64_t) override { open_->write(bytes.data(), bytes.size()); }
  void finish() override {
    finish_file();
    if (options_.written_as != WrittenAs::raw) write_file_list(part_.list, files_, options_.folder.empty());
  }

 private:
  void finish_file() {
    if (!open_) return;
    open_->commit();
    files_.push_back(open_->path());
    open_.reset();
  }
  const Part& part_;
  const SampleEncoder& encoder_;
  const GenerateOptions& options_;
  std::optional<AtomicFile> open_;
  std::vector<fs::path> files_;
};

class ParquetFiles : public PartWriter {
 public:
  ParquetFiles(fs::path folder, const fs::path& list, ParquetStyle style)
      : set_(std::move(folder), list, std::move(style), [](int64_t n) { return cat("gen_", n, ".parquet"); }) {}
  void next_file(int64_t, int64_t) override { set_.next_file(); }
  void write(const std::vector<std::byte>& bytes, int64_t samples) override { set_.append(bytes, samples); }
  void finish() override { set_.finish(); }

 private:
  ParquetSetWriter set_;
};

/// The folder of a set's Parquet files. Each set needs its own folder, because each has a _metadata.json. With the
/// option `folder`, the result is its subfolder for the set. Otherwise the result is the folder of the set's list. If
/// the lists of both sets are in one folder, the result is a subfolder of that folder.
fs::path parquet_folder(const Part& part, const DataSection& section, const GenerateOptions& options) {
  if (!options.folder.empty()) return options.folder / part.name;
  const fs::path folder = part.list.parent_path();
  return fs::path(section.source).parent_path() == fs::path(section.eval_source).parent_path() &&
                 !section.eval_source.empty()
             ? folder / part.list.stem()
             : folder;
}

ParquetStyle parquet_style(const SampleMaker& maker, int threads) {
  ParquetStyle style;
  style.threads = threads;
  style.record = maker.style();
  style.record.check = Check::none;
  for (int64_t i = 0; i < style.record.label_dim; ++i)
    style.labels.push_back(style.record.label_dim == 1 ? "label" : cat("label", i));
  for (int64_t i = 0; i < style.record.dense_dim; ++i) style.dense.push_back(cat("I", i + 1));
  for (int64_t i = 0; i < style.record.slots; ++i) style.slots.push_back(cat("C", i + 1));
  for (const int64_t most : maker.most_nnz()) style.lists.push_back(most != 1 || maker.may_run_out());
  return style;
}

/// Makes samples and encodes them, on several threads.
struct SampleSource {
  const SampleMaker& maker;
  const SampleEncoder& encoder;
  ThreadPool& pool;
};

/// Generates blocks in parallel and writes them in order, with enough blocks in progress for all threads. `keep`:
/// whether to return the true scores.
Truth write_part(const Part& part, const SampleSource& source, PartWriter& writer, const ShowProgress& show,
                 bool keep) {
  const int64_t labels = source.maker.style().label_dim;
  const auto truth_of = [labels](int64_t samples) {
    return Truth{std::make_unique<double[]>(static_cast<size_t>(samples * labels)),
                 std::make_unique<bool[]>(static_cast<size_t>(samples * labels))};
  };
  Truth truth = truth_of(keep ? part.samples : 0);
  Progress progress(show, cat("writing ", part.list.string()), "samples", part.samples);
  std::vector<std::vector<std::byte>> blocks(static_cast<size_t>(source.pool.threads()) * 4);
  for (int64_t file = 0; file < part.files; ++file) {
    const int64_t begin = part.samples * file / part.files, end = part.samples * (file + 1) / part.files;
    writer.next_file(file, end - begin);
    for (int64_t wave = begin; wave < end; wave += kBlock * static_cast<int64_t>(blocks.size())) {
      const int64_t wave_end = std::min(end, wave + kBlock * static_cast<int64_t>(blocks.size()));
      const int64_t count = (wave_end - wave + kBlock - 1) / kBlock;
      source.pool.parallel_for(count, 1, [&](int64_t from, int64_t to) {
        GeneratedSample sample;
        const Truth dropped = truth_of(keep ? 0 : 1);
        const Truth& into = keep ? truth : dropped;
        for (int64_t b = from; b < to; ++b) {
          auto& bytes = blocks[static_cast<size_t>(b)];
          bytes.clear();
          for (int64_t i = wave + b * kBlock; i < std::min(wave_end, wave + (b + 1) * kBlock); ++i) {
            const int64_t at = keep ? i * labels : 0;
            source.maker.make(random_stream(part.name), i, sample, into.probability.get() + at,
                              into.positive.get() + at);
            source.encoder.append(sample, bytes);
          }
        }
      });
      for (int64_t b = 0; b < count; ++b)
        writer.write(blocks[static_cast<size_t>(b)], std::min(kBlock, wave_end - wave - b * kBlock));
      progress.update(wave_end);
    }
  }
  writer.finish();
  progress.finish();
  return truth;
}

fs::path sidecar(const fs::path& list) { return list.string() + ".made.json"; }

/// Whether the set exists already and was generated with the same parameters, `made`.
bool present(const Part& part, const Json& made, WrittenAs as, const Log& log) {
  if (!fs::exists(part.list) || !fs::exists(sidecar(part.list))) return false;
  const Json was = Json::read_file(sidecar(part.list));
  if (was.text() != made.text()) return false;
  // throws if a file of the list is missing
  if (as != WrittenAs::raw) read_file_list(part.list, log, as == WrittenAs::parquet);
  return true;
}

void check_options(const std::vector<Part>& parts, const GenerateOptions& options) {
  if (options.written_as == WrittenAs::raw &&
      (options.files != 1 || options.eval_files != 1 || !options.folder.empty()))
    throw Error(
        Kind::usage,
        "Raw data are written to one file, the source of the Data layer; remove --files, --eval-files and the data "
        "folder");
  for (const Part& part : parts)
    if (part.samples < 1 || part.files < 1 || part.files > part.samples)
      throw Error(Kind::usage,
                  cat(part.samples, " samples in ", part.files, " files: expected at least one sample per file"));
  if (!(options.positive_share > 0 && options.positive_share < 1))
    throw Error(Kind::usage, cat("the share of positives must be between 0 and 1, not ", options.positive_share));
  if (!(options.related >= -1 && options.related <= 1))
    throw Error(Kind::usage, cat("the correlation of labels must be from -1 to 1, not ", options.related));
  if (parts.size() == 2 && data_file(parts[0], options, "", 0) == data_file(parts[1], options, "", 0))
    throw Error(Kind::usage,
                cat("\"source\" '", parts[0].list.string(), "' and \"eval_source\" '", parts[1].list.string(),
                    "' differ only in their extension, so their data files would have the same names"));
}

std::vector<Part> parts_of(const DataSection& section, const GenerateOptions& options) {
  std::vector<Part> parts = {{"train", section.source, options.samples, options.files}};
  if (!section.eval_source.empty())
    parts.push_back({"val", section.eval_source, options.eval_samples, options.eval_files});
  return parts;
}

std::vector<FileLock> lock_outputs(const std::vector<Part>& parts, const GenerateOptions& options) {
  std::vector<FileLock> locks;
  if (!options.folder.empty()) locks.emplace_back(options.folder / "", "the folder");
  for (const Part& part : parts)
    if (&part == &parts.front() || part.list != parts.front().list) locks.emplace_back(part.list, "the data set");
  return locks;
}

/// Checks that no input would be overwritten, and unless `force` is set, no existing data set. Errors: Error(usage).
void check_outputs(const std::vector<Part>& parts, const DataSection& section, const GenerateOptions& options) {
  for (const Part& part : parts)
    for (const fs::path& file : {part.list, sidecar(part.list), truth_path(part.list)})
      expect_no_input(file, "the generated file", [&] { return files_of_config(options.config, options.environment); });
  if (options.force) return;
  for (const Part& part : parts)
    if (fs::exists(part.list))
      throw Error(
          Kind::usage,
          cat("'", part.list.string(),
              "' already exists, but was made with other parameters; --force overwrites the file and its data files"));
  if (options.written_as != WrittenAs::parquet) return;
  for (const Part& part : parts)
    if (const fs::path other = parquet_folder(part, section, options) / kParquetMetadata; fs::exists(other))
      throw Error(Kind::usage,
                  cat("'", other.string(),
                      "' already exists, and this data set would overwrite the file; choose another folder for '",
                      part.list.string(), "', or use --force to overwrite"));
}

/// Removes the files of an older set. If this run is interrupted later, they must not seem to describe the new data.
void remove_older(const Part& part, const GenerateOptions& options) {
  remove_older_results({part.list, sidecar(part.list), truth_path(part.list)}, true);
  remove_parts_of_dead_processes(part.list.parent_path() / part.list.stem());
  if (!options.folder.empty()) remove_parts_of_dead_processes(options.folder / part.name / "gen_");
}

}  // namespace

Json made_with(const DataSection& section, const GenerateOptions& options) {
  const auto whole = [](uint64_t value) { return Json(std::to_string(value)); };
  Json made;
  made.set("schema", 1)
      .set("samples", options.samples)
      .set("eval_samples", options.eval_samples)
      .set("files", options.files);
  made.set("eval_files", options.eval_files).set("seed", whole(options.seed)).set("alpha", options.alpha);
  made.set("interactions", options.interactions)
      .set("signal", options.signal)
      .set("positive_share", options.positive_share);
  if (options.related != 0) made.set("related", options.related);
  made.set("vocabulary", to_json(options.vocabulary))
      .set("max_nnz", options.max_nnz)
      .set("hashed_keys", options.hashed_keys);
  if (!options.nnz.empty()) made.set("nnz", to_json(options.nnz));
  if (options.written_as == WrittenAs::csv || options.written_as == WrittenAs::tsv)
    made.set("text", options.written_as == WrittenAs::csv ? "csv" : "tsv");
  made.set("key_bytes", options.key_bytes).set("folder", options.folder.string());
  DataSection content = section;  // keeps only the fields that affect samples
  content.num_workers.reset();
  made.set("data", data_schema().effective(content));
  return made;
}

std::optional<BestPossible> generate(const DataSection& section, const GenerateOptions& options, const Log& log) {
  if (section.format == kFeatureFormat)
    throw Error(Kind::usage,
                "data with a feature specification cannot be generated; generate text with --text csv from a Data "
                "layer without feature_spec, and describe the text with the tool feature_spec");
  const std::vector<Part> parts = parts_of(section, options);
  check_options(parts, options);
  const std::vector<FileLock> locks = lock_outputs(parts, options);
  const Json made = made_with(section, options);
  if (std::all_of(parts.begin(), parts.end(),
                  [&](const Part& part) { return present(part, made, options.written_as, log); })) {
    log.info("'", section.source, "' already exists and was made with the same parameters: nothing to do");
    return parts.size() == 2 ? read_best_possible(section.eval_source) : std::nullopt;
  }
  check_outputs(parts, section, options);
  const SampleMaker maker(section, options);
  const SampleEncoder encoder(section, options.written_as, maker.style());
  ThreadPool pool(options.threads);
  std::optional<BestPossible> best;
  // if the plug-in is missing, fails here, before older results are removed
  if (options.written_as == WrittenAs::parquet) parquet_plugin();
  for (const Part& part : parts) {
    remove_older(part, options);
    std::unique_ptr<PartWriter> writer;
    if (options.written_as == WrittenAs::parquet)
      writer = std::make_unique<ParquetFiles>(parquet_folder(part, section, options), part.list,
                                              parquet_style(maker, options.threads));
    else
      writer = std::make_unique<ByteFiles>(part, encoder, options);
    const bool scored = part.name == "val";
    const Truth truth = write_part(part, {maker, encoder, pool}, *writer, options.progress, scored);
    if (scored) {
      const auto count = static_cast<size_t>(part.samples * maker.style().label_dim);
      best = best_possible({truth.probability.get(), count}, {truth.positive.get(), count}, maker.style().label_dim);
      write_best_possible(part.list, *best, made);
    }
    write_text(sidecar(part.list), made.text(2) + "\n");
  }
  return best;
}

}  // namespace hctr
