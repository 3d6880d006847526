#include "formats/catalog/data_schema.h"

#include "core/base/expect.h"
#include "formats/catalog/bad_records_file.h"
#include "formats/catalog/format_table.h"
#include "formats/catalog/section_widths.h"
#include "formats/io/topic_files.h"

namespace hctr {
namespace {

constexpr int64_t kAsyncShuffle = 1 << 20;  // samples
// Maximum of any count per sample. The product of two counts fits in 64 bits.
constexpr double kMostPerSample = 1 << 30;

std::string plural(int64_t count, const char* word) { return cat(count, " ", word, count == 1 ? "" : "s"); }

/// Checks the limits on keys per sample and fills in omitted limits for the effective config.
void check_limits(SparseInput& input, const std::string& pointer, Problems& problems) {
  if (input.keep_first && input.keep_last)
    problems.error(pointer + "/keep_first",
                   "a slot keeps either its first or its last keys, but \"keep_first\" and \"keep_last\" are both "
                   "set: remove one of the two");
  if (!input.nnz_per_slot && !input.max_feature_num_per_sample)
    return problems.error(
        pointer,
        "sparse input needs \"max_feature_num_per_sample\": the maximum number of keys per sample over all its "
        "slots (or \"nnz_per_slot\"); the field is optional only if every column of the input is known to hold one "
        "key");
  if (input.nnz_per_slot) {
    const auto numbers = static_cast<int64_t>(input.nnz_per_slot->values.size());
    if (numbers != 1 && numbers != input.slot_num)
      return problems.error(pointer + "/nnz_per_slot",
                            cat("has ", plural(numbers, "number"), " for ", plural(input.slot_num, "slot")));
    const RecordShape::Input limits = input.limits();
    if (input.max_feature_num_per_sample && *input.max_feature_num_per_sample != limits.max_keys)
      problems.note(pointer + "/max_feature_num_per_sample",
                    cat("has no effect: \"nnz_per_slot\" sets the limit to ", limits.max_keys, " instead of ",
                        *input.max_feature_num_per_sample));
    if (input.max_nnz && *input.max_nnz != limits.max_nnz)
      problems.note(pointer + "/max_nnz", cat("has no effect: \"nnz_per_slot\" sets the limit to ", limits.max_nnz,
                                              " instead of ", *input.max_nnz));
    input.max_feature_num_per_sample = limits.max_keys;
  }
  input.max_nnz = input.limits().max_nnz;  // the effective config shows max_nnz too
}

/// Appends the sample weight to the labels.
void add_sample_weight(DataSection& section, const FormatType& format, const std::string& pointer, Problems& problems) {
  SampleWeightPart& weight = section.sample_weight;
  weight.given = !weight.top.empty();
  if (!weight.given) return;
  const std::string here = pointer + "/sample_weight";
  const auto columns = format.columns ? format.columns(section) : std::nullopt;
  const bool named = columns && !columns->labels->empty();
  if (named && weight.column.empty())
    return problems.error(here,
                          "needs \"column\", the name of the weight column, because the labels are named by "
                          "column");
  if (!named && !weight.column.empty())
    return problems.error(
        here + "/column",
        "the weight is the value after the labels, because the Data layer names no label columns: remove \"column\"");
  if (named) {
    for (const LabelColumn& label : *columns->labels)
      if (label.column == weight.column)
        return problems.error(here + "/column", cat("\"", weight.column, "\" is a label too"));
    LabelColumn& label = columns->labels->emplace_back(weight.column);
    label.number_format = weight.number_format;
    label.unit = weight.unit;
    check_notation(label.notation(), here, problems);
  }
  if (section.label.label_dim.given()) section.label.label_dim = section.label.label_dim + 1;
}

/// Adds a note for each label column that is also a feature.
void note_labels_among_features(DataSection& section, const FormatType& format, const std::string& pointer,
                                Problems& problems) {
  const auto columns = format.columns ? format.columns(section) : std::nullopt;
  if (!columns) return;
  const auto note = [&](const auto& groups, const char* list, const char* what) {
    for (size_t g = 0; g < groups.size(); ++g)
      for (const std::string& column : groups[g].columns)
        for (const LabelColumn& label : *columns->labels)
          if (label.column == column && column != section.sample_weight.column)
            problems.note(cat(pointer, "/", format.object.name, "/", list, "/", g),
                          cat("column '", column, "' is a label and ", what,
                              ": the model reads the label that it predicts, so its metrics are meaningless"));
  };
  note(*columns->dense, "dense", "a dense value");
  note(*columns->slots, "slots", "a slot");
}

void check_topic(const DataSection& section, const FormatType& format, const std::string& pointer, Problems& problems) {
  if (!is_topic_source(section.source)) return;
  if (!section.follow) problems.error(pointer + "/source", "a topic needs \"follow\": true");
  if (!format.lines_of_text) {
    std::string formats;
    for (const FormatType& type : format_types())
      if (type.lines_of_text) formats += (formats.empty() ? "" : " or ") + std::string(type.format.name);
    problems.error(pointer + "/source", cat("messages of a topic are lines of text: expected format ", formats));
  }
  try {
    topic_source(section.source);
  } catch (const Error& error) {
    problems.error(pointer + "/source", error.what());
  }
}

void check_following(const DataSection& section, const FormatType& format, const std::string& pointer,
                     Problems& problems) {
  check_topic(section, format, pointer, problems);
  if (!section.follow) {
    if (section.follow_idle) problems.error(pointer + "/follow_idle", "needs \"follow\": true");
    return;
  }
  if (!format.files)
    problems.error(pointer + "/follow",
                   "a feature specification cannot be followed, because each of its samples is spread over several "
                   "files; use another format");
  if (section.num_samples > 0)
    problems.error(pointer + "/num_samples", "with \"follow\" files are read completely; remove num_samples");
}

void check_together(DataSection& section, const std::string& pointer, Problems& problems) {
  for (const FormatType& type : format_types())
    if (type.complete) type.complete(section, pointer, problems);
  const FormatType& format = format_type(section.format);
  add_sample_weight(section, format, pointer, problems);
  const size_t before = problems.errors().size();
  complete_widths(section, format, pointer, problems);
  for (size_t i = 0; i < section.sparse.size(); ++i)
    if (section.sparse[i].slot_num.given()) check_limits(section.sparse[i], cat(pointer, "/sparse/", i), problems);
  note_labels_among_features(section, format, pointer, problems);
  if (problems.errors().size() == before && format.check) format.check(section, pointer, problems);
  for (const FormatType& type : format_types())
    if (type.format != section.format && !type.object.name.empty() && type.object.given(section))
      problems.note(pointer + "/" + type.object.name,
                    cat("has no effect: the format is not \"", type.format.name, "\""));
  if (section.async_param && !section.async_param->shuffle)
    problems.note(pointer + "/async_param",
                  "\"async_param\" is accepted and has no effect: this program reads "
                  "data in another way");
  else if (section.async_param && section.shuffle == 0) {
    section.shuffle = kAsyncShuffle;
    problems.note(pointer + "/async_param/shuffle",
                  cat("taken as \"shuffle\": ", kAsyncShuffle,
                      " of the Data layer, the number of samples in the shuffle window; set \"shuffle\" for "
                      "another size"));
  }
  if (section.negative_sampling < 1 && section.labels() != 1)
    problems.error(
        pointer + "/negative_sampling",
        cat("needs a single label to distinguish positives from negatives; the Data layer has ", section.labels(),
            section.sample_weight.given ? "" : " (put sample weights into \"sample_weight\")"));
  check_following(section, format, pointer, problems);
  if (section.options.find<BadRecordsSection>() && section.bad_records != BadRecordPolicy::skip)
    problems.error(pointer + "/bad_records_file",
                   "needs \"bad_records\": \"skip\": without it bad records are "
                   "errors");
  if (section.source.empty())
    problems.error(pointer + "/source", cat("expected ", format.source_text, ", found an empty string"));

  std::vector<std::pair<std::string, std::string>> tops = {{section.label.top, "/label/top"},
                                                           {section.dense.top, "/dense/top"}};
  if (section.sample_weight.given) tops.emplace_back(section.sample_weight.top, "/sample_weight/top");
  for (size_t i = 0; i < section.sparse.size(); ++i)
    tops.emplace_back(section.sparse[i].top, cat("/sparse/", i, "/top"));
  for (size_t i = 0; i < tops.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (tops[i].first == tops[j].first)
        problems.error(pointer + tops[i].second,
                       cat("\"", tops[i].first, "\" is already the name of ", pointer, tops[j].second));
}

Schema<LabelPart> label_schema() {
  return Schema<LabelPart>("label")
      .need("top", &LabelPart::top, "name of the label tensor")
      .opt("label_dim", &LabelPart::label_dim,
           "number of labels per sample; optional if the layer lists its label columns", between(1, kMostPerSample));
}

Schema<SampleWeightPart> sample_weight_schema() {
  return Schema<SampleWeightPart>("sample_weight")
      .need("top", &SampleWeightPart::top, "name of the tensor that losses read as their third bottom")
      .opt("column", &SampleWeightPart::column,
           "the column, if the layer lists its label columns; otherwise the weight is the value after the labels")
      .opt("number_format", &SampleWeightPart::number_format, kNumberFormatHelp)
      .opt("unit", &SampleWeightPart::unit, kUnitHelp);
}

Schema<DensePart> dense_schema() {
  return Schema<DensePart>("dense")
      .need("top", &DensePart::top, "name of the dense tensor")
      .opt("dense_dim", &DensePart::dense_dim,
           "number of dense features per sample; may be 0; optional if the layer lists its dense columns",
           between(0, kMostPerSample))
      .ignored("aligned", "the program chooses the layout of batches");
}

Schema<SparseInput> sparse_schema() {
  return Schema<SparseInput>("sparse input")
      .need("top", &SparseInput::top, "name under which an embedding reads this input")
      .opt("type", &SparseInput::type,
           "accepted from v2 files without effect: the type of the embedding that reads the input is used")
      .opt("slot_num", &SparseInput::slot_num,
           "number of consecutive slots of the record that belong to this input; if the layer lists its slot "
           "columns, one input may omit slot_num and gets the remaining slots",
           between(1, kMostPerSample))
      .opt("max_feature_num_per_sample", &SparseInput::max_feature_num_per_sample,
           "maximum number of keys per sample over all slots of this input; optional with max_nnz, and if the layer "
           "lists columns that hold one key each (in Parquet data longer lists are an error)",
           between(1, kMostPerSample))
      .opt("max_nnz", &SparseInput::max_nnz, "maximum number of keys of one slot; default: max_feature_num_per_sample",
           between(1, kMostPerSample))
      .opt("nnz_per_slot", &SparseInput::nnz_per_slot,
           "maximum number of keys of each slot; v3.1's replacement for max_feature_num_per_sample and max_nnz",
           between(1, kMostPerSample))
      .opt("keep_first", &SparseInput::keep_first,
           "keep only this number of first keys of each slot; default: all keys that the limits allow",
           between(1, kMostPerSample))
      .opt("keep_last", &SparseInput::keep_last, "keep only this number of last keys of each slot",
           between(1, kMostPerSample))
      .opt("is_fixed_length", &SparseInput::is_fixed_length,
           "accepted from v3.1 files without effect: the records state the number of keys", between(0, 1));
}

void add_sources(Schema<DataSection>& schema) {
  schema.opt("name", &DataSection::name, "accepted without effect")
      .opt("format", &DataSection::format, "the format of the samples")
      .opt("feature_spec", &DataSection::feature_spec,
           "a feature specification (YAML file), instead of format. source and eval_source then name mappings, by "
           "default train and test; slot_size_array is optional if the specification states cardinalities")
      .opt("source", &DataSection::source,
           "the training data: a file, a file list, a folder or a pattern; with follow also a topic, "
           "\"kafka://host:port/topic\"; optional with feature_spec")
      .opt("eval_source", &DataSection::eval_source,
           "the evaluation data, in the same form as source; empty: no "
           "evaluation")
      .opt("follow", &DataSection::follow,
           "source is a folder or a file list to which files are added. Each file is read once, and training waits "
           "for new files until a file or list entry _END, max_iter or a signal ends it")
      .opt("follow_idle", &DataSection::follow_idle,
           "training ends if no new file appears for this many minutes; default: no limit",
           Range{.low = 0, .high = 1e6, .low_open = true});
}

void add_contents(Schema<DataSection>& schema) {
  schema
      .opt("check", &DataSection::check,
           "whether records have check sums; default: detected from the files. If the field is set, files that "
           "contradict it are an error")
      .part("label", &DataSection::label, label_schema(), "the labels of a sample")
      .part("sample_weight", &DataSection::sample_weight, sample_weight_schema(),
            "the weight of each sample in the losses that read it", false)
      .part("dense", &DataSection::dense, dense_schema(), "the dense features of a sample")
      .list("sparse", &DataSection::sparse, sparse_schema(),
            "the sparse inputs, in the order of their slots in the record")
      .opt("num_samples", &DataSection::num_samples, "samples in source; not needed for Norm and Parquet", at_least(0))
      .opt("eval_num_samples", &DataSection::eval_num_samples,
           "samples in eval_source; not needed for Norm and Parquet", at_least(0))
      .opt("slot_size_array", &DataSection::slot_size_array, "number of distinct keys of each slot",
           between(0, 1LL << 48))
      .opt("float_label_dense", &DataSection::float_label_dense,
           "whether labels and dense values of Raw data are "
           "floats; Norm data are always float");
}

void add_reading(Schema<DataSection>& schema) {
  schema
      .opt("num_workers", &DataSection::num_workers,
           "number of threads that parse the data; default: the program "
           "chooses",
           between(1, 1024))
      .opt("shuffle", &DataSection::shuffle,
           "number of samples in the window within which training samples are shuffled; each pass also shuffles "
           "the order of files; 0: no shuffling. The order depends on the solver's seed and the pass",
           between(0, 1 << 30))
      .opt("negative_sampling", &DataSection::negative_sampling,
           "the fraction of training samples with label 0 that each pass keeps, chosen anew in each pass. The loss "
           "corrects for the dropped samples, so predictions stay calibrated. Needs a single label of 0 or 1. "
           "Evaluation reads every sample",
           Range{.low = 0, .high = 1, .low_open = true});
}

void add_bad_records(Schema<DataSection>& schema) {
  schema
      .opt("bad_records", &DataSection::bad_records,
           "what to do with a bad record: \"error\": stop; \"skip\": skip and count it; default: stop, but skip Norm "
           "records that fail their check sum")
      .opt("max_bad_records", &DataSection::max_bad_records,
           "maximum number of skipped records; one more is an error; default: no limit", at_least(0))
      .part_in("bad_records_file", &DataSection::options, bad_records_schema(),
               "a file for the records that \"bad_records\": \"skip\" skips: a JSON line for each, with file, record, "
               "offset and cause. A path, or an object");
}

void add_evaluation_cache_and_async(Schema<DataSection>& schema) {
  schema
      .opt("cache_eval_data", &DataSection::cache_eval_data,
           "number of evaluation batches to keep in device memory after the first evaluation, or true for all "
           "batches; other batches are read in each evaluation",
           at_least(0))
      .opt("async_param", &DataSection::async_param,
           cat("settings of format RawAsync. If its field shuffle is true, shuffle of the Data layer is ",
               kAsyncShuffle, ", unless the layer sets shuffle; other fields have no effect"))
      .ignored("num_iterations_statistics", "data are not analyzed before training");
}

}  // namespace

Schema<DataSection> data_schema() {
  Schema<DataSection> schema("Data");
  // the order of these calls is the order of the manual
  add_sources(schema);
  add_contents(schema);
  add_reading(schema);
  add_bad_records(schema);
  for (const FormatType& type : format_types())
    if (!type.object.name.empty()) type.object.declare(schema);
  add_evaluation_cache_and_async(schema);
  schema.together(check_together);
  return schema;
}

DataSection data_section_of(const Json& config, Problems& problems) {
  const Json* layers = config.find("layers");
  if (!layers || !layers->array() || layers->array()->empty()) {
    problems.error("/layers", "expected an array whose first element is the Data layer");
    return {};
  }
  const Json& first = layers->array()->front();
  const Json* type = first.find("type");
  std::string word;
  if (!type || !read_value(*type, Range{}, word).empty() || word != "Data") {
    problems.error("/layers/0/type", cat("expected \"Data\", found ", type ? type->kind() : "nothing"));
    return {};
  }
  return data_schema().parse(first, "/layers/0", problems, {"type"});
}

}  // namespace hctr
