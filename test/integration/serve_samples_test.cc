// huge_ctr serve: the sample models, and models of configs that `huge_ctr init` makes, in one service.
#include <regex>

#include "formats/data/data_section.h"
#include "hctr/solver.h"
#include "infer/prediction_source.h"
#include "prepare/generate/generate.h"
#include "prepare/init/init.h"
#include "serve/served_parity.h"
#include "serve_fixture.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

constexpr int kEvalRows = 300;

/// A trained model, the rows to send, and their scores.
struct TrainedModel {
  std::string name;
  size_t rows = 0;
  std::vector<std::string> scores;  // [row] the scores of all losses, as bytes
  SampleArrays samples{};
  std::vector<std::string> columns{};             // if not empty, requests contain cells of these columns
  std::vector<std::vector<std::string>> cells{};  // [column][row]
};

class ServedSamples : public ServeTest {
 protected:
  void SetUp() override {
    ServeTest::SetUp();
    // file names in lists are looked up in the working folder first, so use a folder without data files
    fs::create_directory("samples");
    fs::current_path("samples");
  }

  /// Trains for a few steps.
  static void train_briefly(const std::string& config, const std::string& run) {
    TrainOptions options;
    options.config = config;
    options.run_dir = run;
    options.device = DeviceChoice::cpu;
    options.threads = 1;
    options.max_iter = 6;
    options.changes = {"solver.batchsize=64", "solver.batchsize_eval=512", "solver.eval_interval=1000",
                       "solver.eval_batches=1"};
    EXPECT_EQ(hctr::train(options).iterations, 6) << config;
  }

  /// The scores that predict writes for the evaluation rows, [row].
  static std::vector<std::string> predicted_rows(const std::string& run) {
    std::string text;
    PredictOptions options;
    options.model = run;
    options.device = DeviceChoice::cpu;
    options.out = "-";
    options.rows = [&](std::string_view piece) { text += piece; };
    predict(options);
    std::vector<std::string> rows;
    std::vector<bool> is_score;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::vector<float> scores;
      std::istringstream cells(line);
      size_t column = 0;
      for (std::string cell; std::getline(cells, cell, '\t'); ++column) {
        if (rows.empty() && line.starts_with("row"))
          is_score.push_back(cell.starts_with("score"));
        else if (is_score.at(column))
          scores.push_back(std::strtof(cell.c_str(), nullptr));
      }
      if (!scores.empty()) rows.push_back(bytes_of(scores));
    }
    return rows;
  }

  /// Makes data for a sample's config, trains a model, and predicts the evaluation rows.
  static TrainedModel sample_model(const fs::path& config_file) {
    // The tables of the largest sample take 88 GB, so here its slots have 40 keys each.
    std::string text = read_file(config_file), sizes = "[40";
    for (int s = 1; s < 26; ++s) sizes += ", 40";
    text = std::regex_replace(text, std::regex(R"("slot_size_array": \[[^\]]*\])"),
                              cat("\"slot_size_array\": ", sizes, "]"));
    text = std::regex_replace(text, std::regex(R"("num_samples": \d+)"), "\"num_samples\": 600");
    text = std::regex_replace(text, std::regex(R"("eval_num_samples": \d+)"), cat("\"eval_num_samples\": ", kEvalRows));
    const std::string name = cat(config_file.parent_path().filename().string(), "_", config_file.stem().string());
    write_file(name + ".json", text);
    const Config config = load_config(name + ".json", false, Log::silent());
    GenerateOptions made{
        .samples = 600, .eval_samples = kEvalRows, .files = 1, .eval_files = 1, .vocabulary = {40}, .force = true};
    if (config.data.format.name == "Raw") made.written_as = WrittenAs::raw;
    generate(config.data, made, Log::silent());
    train_briefly(name + ".json", name);
    TrainedModel model{.name = name, .scores = predicted_rows(name)};
    model.samples = read_sample_arrays(config, prediction_source(config), kEvalRows);
    model.rows = static_cast<size_t>(model.samples.samples);
    return model;
  }

  /// A table of clicks. `variant`: which columns it has.
  static std::string table_of_clicks(int rows, int variant) {
    std::mt19937 random(static_cast<unsigned>(variant));
    std::string text = variant == 0 ? "user,age,city,income,tags,seen,item,bought\n" : "seen,item,price,shop,bought\n";
    const auto draw = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    const auto list = [&](const char* prefix, int values, const char* separator) {
      std::string cell;
      for (int i = draw(4); i > 0; --i) cell += cat(cell.empty() ? "" : separator, prefix, draw(values));
      return cell;
    };
    for (int r = 0; r < rows; ++r) {
      const std::string seen = list("", 30, " "), item = std::to_string(draw(30));
      const std::string label = draw(3) == 0 ? "yes" : "no";
      if (variant == 0)
        text += cat("u", draw(40), ",", draw(20) ? std::to_string(18 + draw(50)) : "", ",town ", draw(6), ",",
                    0.5 + draw(10000) / 7.0, ",", list("t", 8, "|"), ",", seen, ",", item, ",", label, "\n");
      else
        text += cat(seen, ",", item, ",", draw(10) ? cat(draw(500) / 4.0) : "", ",shop", draw(12), ",", label, "\n");
    }
    return text;
  }

  /// Makes a config with `init`, trains it, and predicts the rows that init held out.
  static TrainedModel init_model(InitModel kind, int variant) {
    const std::string name = cat(template_word(kind), variant);
    write_file(name + ".csv", table_of_clicks(1200, variant));
    init({.data = name + ".csv",
          .label = "bought",
          .positive = "yes",
          .model = kind,
          .lists = {"seen"},
          .out = name + ".json"},
         [&](const std::string& config) { write_file(name + ".json", config); });
    train_briefly(name + ".json", name);
    TrainedModel model{.name = name, .scores = predicted_rows(name)};
    std::istringstream lines(read_file(name + ".eval.csv"));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream cells(line);
      const bool header = model.cells.empty();
      size_t column = 0;
      for (std::string cell; std::getline(cells, cell, ','); ++column)
        header ? model.columns.push_back(cell) : model.cells.at(column).push_back(cell);
      header ? model.cells.resize(model.columns.size()) : static_cast<void>(++model.rows);
    }
    return model;
  }

  static std::string cells_request(const TrainedModel& model, size_t first, size_t count) {
    std::string inputs;
    for (size_t c = 0; c + 1 < model.columns.size(); ++c)  // the last column is the label
      inputs += cat(inputs.empty() ? "" : ",",
                    tensor(model.columns[c], "BYTES", cat("[", count, "]"), list_of(model.cells[c], first, count)));
    return cat("{\"parameters\":{\"binary_data_output\":true},\"inputs\":[", inputs, "]}");
  }

  /// The scores of rows [first, first + count) of a model, joined.
  static std::string expected_of(const TrainedModel& model, size_t first, size_t count) {
    std::string bytes;
    for (size_t r = first; r < first + count; ++r) bytes += model.scores[r];
    return bytes;
  }

  /// The scores in a response with binary outputs of one column each, by row.
  static std::string scores_by_row(const HttpAnswer& answer, size_t count) {
    if (answer.status != 200) return answer.body;
    const auto header = answer.headers.find("inference-header-content-length");
    if (header == answer.headers.end()) return answer.body;
    const std::string bytes = answer.body.substr(std::strtoul(header->second.c_str(), nullptr, 10));
    const size_t outputs = bytes.size() / (count * sizeof(float));
    std::string by_row;
    for (size_t r = 0; r < count; ++r)
      for (size_t o = 0; o < outputs; ++o) by_row += bytes.substr((o * count + r) * sizeof(float), sizeof(float));
    return by_row;
  }
};

TEST_F(ServedSamples, AndModelsOfInitHaveTheScoresOfPredictForConcurrentClients) {
  std::vector<TrainedModel> models;
  for (const auto& entry : fs::recursive_directory_iterator(hctr::test::source_dir() / "samples"))
    if (entry.path().extension() == ".json") models.push_back(sample_model(entry.path()));
  EXPECT_GE(models.size(), 14u);
  for (const InitModel kind :
       {InitModel::wide_deep, InitModel::deepfm, InitModel::dcn, InitModel::dlrm, InitModel::din})
    for (const int variant : {0, 1}) models.push_back(init_model(kind, variant));
  std::vector<std::string> sources;
  struct Piece {
    const TrainedModel* model;
    size_t first, count;
  };
  std::vector<Piece> pieces;
  std::mt19937 random(1);
  for (const TrainedModel& model : models) {
    sources.push_back(model.name);
    ASSERT_EQ(model.scores.size(), model.rows) << model.name;
    ASSERT_GE(model.rows, 60u) << model.name;
    if (read_file(model.name + ".json").find("PReLU_Dice") != std::string::npos) {
      // the scores depend on the other rows of a request, but not on other requests
      pieces.insert(pieces.end(), 4, {&model, 0, model.rows});
      continue;
    }
    for (size_t first = 0; first < model.rows;) {
      const size_t count = std::min<size_t>(1 + random() % 40, model.rows - first);
      pieces.push_back({&model, first, count});
      first += count;
    }
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  const serve::Service service(options_for(sources));
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::map<std::string, std::string> wrong;  // model -> the first difference
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&] {
      HttpClient client(service.http_port());
      for (size_t p = next++; p < pieces.size(); p = next++) {
        const TrainedModel& model = *pieces[p].model;
        const size_t first = pieces[p].first, count = pieces[p].count;
        const std::string path = cat("/v2/models/", model.name, "/infer");
        HttpAnswer answer;
        if (model.columns.empty()) {
          const serve::PackedRequest request =
              serve::packed_request(model.samples, static_cast<int64_t>(first), static_cast<int64_t>(count));
          answer = client.ask("POST", path, request.body,
                              {{"Inference-Header-Content-Length", std::to_string(request.json_bytes)}});
        } else {
          answer = client.post(path, cells_request(model, first, count));
        }
        if (scores_by_row(answer, count) == expected_of(model, first, count)) continue;
        const std::lock_guard lock(mutex);
        wrong.emplace(model.name, cat("rows ", first, " to ", first + count, ": status ", answer.status, " ",
                                      answer.status == 200 ? "" : answer.body));
      }
    });
  for (std::thread& client : clients) client.join();
  for (const auto& [model, difference] : wrong) ADD_FAILURE() << model << ": " << difference;
}

}  // namespace
}  // namespace hctr::test
