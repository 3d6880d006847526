#include "app/verbs.h"

namespace hctr {
namespace {

const Verb::Heading kConfig = {"Config", {{"--set"}, {"--strict"}}};
const Verb::Heading kDevice = {"Device", {{"--device"}, {"--threads"}, {"--sync-launches"}}};
const Verb::Heading kProcesses = {"Several processes", {{"--comm-timeout"}, {"--join-timeout"}, {"--peer-timeout"}}};

Verb train() {
  return {"train",
          "FILE.json",
          "Train the model that FILE.json describes.",
          {{"Run",
            {{"--run-dir"},
             {"--resume"},
             {"--max-iter"},
             {"--seed"},
             {"--encoding",
              "config: use the config's encoding even if it differs from the encoding of the model that training "
              "starts from; by default a difference is an error"},
             {"--unmatched"}}},
           {"Output", {{"--log"}, {"--metrics-file"}, {"--profile"}}},
           kConfig,
           kDevice,
           {"Several processes",
            {{"--comm-timeout"}, {"--join-timeout"}, {"--peer-timeout"}, {"--restarts"}, {"--restart-wait"}}}},
          {"huge_ctr train config.json --run-dir runs/first", "mpirun -np 2 huge_ctr train config.json",
           "huge_ctr train config.json --resume latest --set solver.batchsize=16384"}};
}

Verb check() {
  return {"check",
          "FILE.json",
          "Check a config: names, values and shapes. Print its layers, the memory of each GPU and the expected "
          "time of a step. Needs no GPU and no data. For a store.json or ps.json: print the size of its tables on "
          "each level.",
          {{"Check", {{"--check-data"}, {"--format"}}},
           {"Hardware to check for", {{"--gpu-name"}, {"--gpu-memory"}, {"--gpus"}}},
           kConfig},
          {"huge_ctr check config.json --check-data", "huge_ctr check config.json --gpu-name H200 --gpus 8"}};
}

Verb evaluate() {
  return {"eval",
          "FILE.json",
          "Print the metrics of a saved model.",
          {{"Model and data", {{"--model"}, {"--data"}, {"--encoding"}, {"--unmatched"}}},
           {"Output", {{"--log"}}},
           kConfig,
           kDevice,
           kProcesses},
          {"huge_ctr eval config.json --model runs/first"}};
}

Verb predict() {
  return {
      "predict",
      "FILE.json",
      "Write the scores of a saved model.",
      {{"Model and data", {{"--model"}, {"--data"}, {"--encoding"}, {"--unmatched"}}},
       {"Output", {{"--out", "A file that ends in .tsv, .csv or .parquet, or - for the standard output"}, {"--keep"}}},
       kConfig,
       kDevice,
       kProcesses},
      {"huge_ctr predict config.json --model runs/first --data new.csv --out scores.csv"}};
}

Verb export_model() {
  return {"export",
          "FORMAT MODEL",
          "Write a saved model for other programs: onnx, npz, safetensors or parquet.",
          {{"Model and data", {{"--model", "The model, if the argument is a config"}, {"--data"}, {"--encoding"}}},
           {"Output", {{"--out", "A new or empty folder"}, {"--rows"}, {"--inline-tables"}}},
           kConfig,
           kDevice},
          {"huge_ctr export onnx runs/first --out first_onnx"}};
}

Verb init() {
  return {"init",
          "DATA",
          "Inspect the rows of a table, text or Parquet, and write a config that trains on them.",
          {{"Data",
            {{"--label"},
             {"--positive"},
             {"--eval", "A table of evaluation rows; by default a tenth of the rows is held out"},
             {"--leave-out"},
             {"--category"},
             {"--number"},
             {"--list"},
             {"--number-format"}}},
           {"Model", {{"--template"}}},
           {"Output", {{"--out", "The config; default: the standard output"}}}},
          {"huge_ctr init clicks.csv --label clicked --out config.json"}};
}

Verb report() {
  return {"report",
          "RUN ...",
          "Write a page about the runs in these run folders.",
          {{"Page", {{"--out", "A file that ends in .html"}, {"--no-scores"}, {"--importance"}, {"--score-rows"}}},
           kConfig,
           kDevice},
          {"huge_ctr report runs/first runs/second --out runs.html"}};
}

Verb store() {
  return {"store",
          "load|follow|get|stats|verify|compact FILE.json",
          "Store the tables of models for inference: load tables, follow streams of updates, look up keys, print "
          "statistics, verify checksums or compact files. FILE.json is a store.json or a ps.json.",
          {{"Look up", {{"--store-model"}, {"--table"}, {"--keys"}, {"--slot"}}}},
          {"huge_ctr store load store.json", "huge_ctr store get store.json --table deep_emb --keys 7,42"}};
}

Verb serve_models() {
  return {"serve",
          "REPOSITORY|RUN...",
          "Serve models over HTTP and gRPC with KServe's v2 protocol, which Triton uses. Arguments: a folder of "
          "models; or run folders, checkpoints and prefixes, also as NAME=RUN.",
          {{"Models", {{"--model-control"}, {"--load-model"}, {"--poll-seconds"}, {"--instances"}, {"--verify"}}},
           {"Network",
            {{"--address"},
             {"--http-port"},
             {"--grpc-port"},
             {"--metrics-port"},
             {"--http-threads"},
             {"--max-connections"},
             {"--max-body"},
             {"--store"},
             {"--shared-memory"},
             {"--cuda-shared-memory"},
             {"--exit-timeout"}}},
           {"Batches", {{"--max-batch"}, {"--batch-delay"}, {"--max-queue"}, {"--queue-timeout"}}},
           {"Device", {{"--device"}, {"--threads"}}}},
          {"huge_ctr serve runs/first", "huge_ctr serve models --model-control poll",
           "huge_ctr serve runs/first --verify"}};
}

Verb explain() {
  return {"explain",
          "NAME [FILE.json]",
          "Print the manual's entry of a section, layer, optimizer, metric or data format; layers: all layers; "
          "config: all sections; step FILE.json: the plan of a training step, for this machine's GPU or an H200.",
          {kConfig, {"Device", {{"--device", "cpu: the plan of a step on the CPU"}}}},
          {"huge_ctr explain solver", "huge_ctr explain MultiCross", "huge_ctr explain step config.json"}};
}

}  // namespace

std::vector<Verb> verbs_of_huge_ctr() {
  return {init(),   check(),        train(), evaluate(),     predict(),
          report(), export_model(), store(), serve_models(), explain()};
}

}  // namespace hctr
