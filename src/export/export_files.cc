#include "export/export_files.h"

#include <charconv>
#include <set>

#include "core/base/build_info.h"
#include "export/array_files.h"
#include "export/onnx_model.h"
#include "export/parquet_arrays.h"

namespace hctr {
namespace {

constexpr int64_t kExportSchema = 1;

Json list_of(const std::vector<int64_t>& numbers) {
  Json list(Json::Array{});
  for (const int64_t number : numbers) list.add(number);
  return list;
}

/// A dimension as JSON: an integer, or a name such as "N".
Json number_or_name(const std::string& dim) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(dim.data(), dim.data() + dim.size(), number);
  return status == std::errc() && end == dim.data() + dim.size() ? Json(number) : Json(dim);
}

const char* ending_of(ExportFormat format) {
  return format == ExportFormat::npz ? ".npz" : format == ExportFormat::parquet ? ".parquet" : ".safetensors";
}

/// Returns a file name for each table. Replaces characters that a file system may reject.
std::vector<std::string> file_names(const std::vector<TableArrays>& tables) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const TableArrays& table : tables) {
    std::string name = table.name;
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
    if (name.empty() || name[0] == '.') name = "_" + name;
    std::string free = name;
    for (int n = 1; !taken.insert(free).second; ++n) free = cat(name, "_", n);
    names.push_back(free);
  }
  return names;
}

class ExportWriter {
 public:
  ExportWriter(FileSet& set, const ExportFiles& files, const Config& config, const ModelArrays& arrays)
      : set_(set), files_(files), config_(config), arrays_(arrays) {}

  void run() {
    about_ = Json(Json::Object{{"schema", kExportSchema},
                               {"written_by", cat("huge_ctr ", version())},
                               {"model", files_.model},
                               {"iteration", files_.iteration}});
    files_.format == ExportFormat::onnx ? write_graph() : write_arrays();
    if (!config_.data.statistics.empty()) about_.set("column_statistics", to_json(config_.data.statistics));
    about_.set("config", config_.effective);
    AtomicFile& file = set_.add(files_.folder / "model.json");
    file.write(about_.text(1) + "\n");
    file.finish();
  }

 private:
  std::vector<std::pair<std::string, std::string>> metadata() const {
    return {{"model", files_.model}, {"iteration", std::to_string(files_.iteration)}};
  }

  void write_graph() {
    OnnxModel model = onnx_model(config_, arrays_);
    model.metadata = metadata();
    model.metadata.emplace_back("no_key", std::to_string(no_key_of(arrays_)));
    write_onnx(set_, files_.folder / "model.onnx", model, files_.most_inline);
    const auto list = [](const std::vector<OnnxValue>& values) {
      Json all(Json::Array{});
      for (const OnnxValue& value : values) {
        Json dims(Json::Array{});
        for (const std::string& dim : value.dims) dims.add(number_or_name(dim));
        all.add(Json(Json::Object{
            {"name", value.name}, {"dtype", value.dtype == DType::i64 ? "int64" : "float32"}, {"shape", dims}}));
      }
      return all;
    };
    about_.set("format", "onnx").set("inputs", list(model.inputs)).set("outputs", list(model.outputs));
    about_.set("no_key", no_key_of(arrays_)).set("tables", tables("", {}));
  }

  void write_arrays() {
    const std::string ending = ending_of(files_.format), dense = "dense" + ending;
    std::vector<StoredArray> all = arrays_.weights;
    all.insert(all.end(), arrays_.statistics.begin(), arrays_.statistics.end());
    write_file(dense, all);
    const std::vector<std::string> names = file_names(arrays_.tables);
    for (size_t t = 0; t < names.size(); ++t) write_table("tables/" + names[t] + ending, arrays_.tables[t]);
    const auto list = [](const std::vector<StoredArray>& arrays) {
      Json named(Json::Array{});
      for (const StoredArray& array : arrays)
        named.add(Json(Json::Object{{"name", array.name}, {"shape", list_of(array.dims)}}));
      return named;
    };
    about_.set("format", ending.substr(1)).set("file", dense);
    about_.set("weights", list(arrays_.weights)).set("statistics", list(arrays_.statistics));
    about_.set("tables", tables(ending, names));
  }

  void write_file(const std::string& name, const std::vector<StoredArray>& arrays) {
    const fs::path path = files_.folder / name;
    if (files_.format == ExportFormat::npz) return write_npz(set_, path, arrays);
    if (files_.format == ExportFormat::parquet) return write_parquet_arrays(set_, path, arrays);
    write_safetensors(set_, path, arrays, metadata());
  }

  void write_table(const std::string& name, const TableArrays& table) {
    if (files_.format == ExportFormat::parquet) return write_parquet_table(set_, files_.folder / name, table);
    std::vector<StoredArray> arrays = {table.key_array("keys")};
    if (table.by_slot) arrays.push_back(table.slot_array("slots"));
    arrays.push_back(table.vector_array("vectors"));
    write_file(name, arrays);
  }

  Json tables(const std::string& ending, const std::vector<std::string>& names) const {
    Json all(Json::Array{});
    for (size_t t = 0; t < arrays_.tables.size(); ++t) {
      const TableArrays& table = arrays_.tables[t];
      const EmbeddingSection& section = config_.embeddings[t].section;
      Json entry(Json::Object{{"name", table.name},
                              {"rows", table.rows()},
                              {"embedding_vec_size", table.dim},
                              {"identity", table.by_slot ? "slot_and_key" : "key"},
                              {"input", section.bottom},
                              {"combiner", to_json(section.hparam.combiner)}});
      if (!names.empty()) entry.set("file", "tables/" + names[t] + ending);
      all.add(std::move(entry));
    }
    return all;
  }

  FileSet& set_;
  const ExportFiles& files_;
  const Config& config_;
  const ModelArrays& arrays_;
  Json about_;
};

}  // namespace

void write_export(FileSet& set, const ExportFiles& files, const Config& config, const ModelArrays& arrays) {
  ExportWriter(set, files, config, arrays).run();
}

}  // namespace hctr
