#!/usr/bin/env python3
"""Writes the configs used for the figures of docs/performance.md, derived from the configs in samples/.

    tools/bench/model_configs.py FOLDER

dlrm.json        26 one-hot tables of 400,000 rows, dim 128, fp16 (dlrm_hybrid.json: frequent keys on every rank)
dlrm_large.json  the tables of MLPerf's DLRM scaled to 84.9 GiB in total, two ranks
dlrm_huge.json   the tables of MLPerf's DLRM scaled to 421 GiB, one table with 140 GiB, four ranks
wdl7.json, dcn7.json  Wide & Deep and DCN with seven layers of 1,024, bf16 (dlrm, wdl7, dcn7: for `bench scale`)
mlperf_dcnv2.json  MLPerf's DLRM-DCNv2: 214 keys per sample in 26 bags, at most 4 million rows per slot, cross layers of rank 512, AdaGrad, bf16
step_<model>_<type>.json  the four models of the step table: HugeCTR's sample widths, Criteo-Kaggle's tables, updates of touched rows
step_<model>_half_global.json  like step_<model>_half.json, with Adam on all rows in every step, and direct keys
attention.json, gru.json  sequences of 50 vectors of 64 through MultiHeadAttention with 4 heads, or through a GRU of 64 units, bf16
wdl_<type>.json, wdl_raw_<type>.json  the sample wdl with one key per slot, from Norm or Raw files; f32, tf32 and bf16

Data: data_generator --config CONFIG --samples N --alpha 1.05, in FOLDER; wdl_raw needs --samples 2000000 --eval-samples 10000.
"""
import copy
import json
import pathlib
import sys

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "samples"
MLPERF = [39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208, 11938, 155, 4, 976, 14, 39979771, 25641295,
          39664984, 585935, 12972, 108, 36]
# keys of each slot, 214 per sample in total
MLPERF_BAGS = [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1]
WDL_SLOT = 89000  # rows per slot; all 27 slots together have 2.4 million rows, like the original


def sample(path):
    return json.loads((SAMPLES / path).read_text())


def set_up(config, name, batch, iterations, precision):
    """The common parts: a solver for a fixed number of steps, and data named after the config."""
    solver = config["solver"]
    for word in ("num_epochs", "mixed_precision", "scaler"):
        solver.pop(word, None)
    solver.update(batchsize=batch, max_iter=iterations, eval_interval=0, display=max(1, iterations // 6), snapshot_prefix=f"{name}_model/")
    if precision == "tf32":
        solver["enable_tf32_compute"] = True
    elif precision == "tf32x3":
        solver["fp32_products"] = precision
    elif precision != "f32":
        solver["mixed_precision"] = precision
    data = config["layers"][0]
    data.update(source=f"{name}_train.txt", eval_source=f"{name}_eval.txt")
    return data


def embeddings(config):
    return [layer for layer in config["layers"] if "sparse_embedding_hparam" in layer]


def dense(name, bottom, width):
    return [{"name": name, "type": "InnerProduct", "bottom": bottom, "top": name, "fc_param": {"num_output": width}},
            {"name": f"{name}_relu", "type": "ReLU", "bottom": name, "top": f"{name}_relu"}]


def dlrm(name, rows, *, bottom=(512, 256), top=(1024, 1024, 512), dim=128, batch=16384, iterations=120, rate=0.3):
    """DLRM: dense values through the layers `bottom` and `dim`, pairwise products, then the layers `top` and the
    click.
    """
    config = sample("dlrm/config.json")
    data = set_up(config, name, batch, iterations, 1024)
    data["slot_size_array"] = rows
    config["optimizer"] = {"type": "SGD", "sgd_hparam": {"learning_rate": rate}}
    table = embeddings(config)[0]
    table["sparse_embedding_hparam"].update(slot_size_array=rows, embedding_vec_size=dim)
    layers, last = [data, table], "dense"
    for i, width in enumerate((*bottom, dim)):
        layers += dense(f"bottom{i}", last, width)
        last = f"bottom{i}_relu"
    layers.append({"name": "interaction", "type": "Interaction", "bottom": [last, "embedding"], "top": "interaction"})
    last = "interaction"
    for i, width in enumerate(top):
        layers += dense(f"top{i}", last, width)
        last = f"top{i}_relu"
    layers.append({"name": "logits", "type": "InnerProduct", "bottom": last, "top": "logits", "fc_param": {"num_output": 1}})
    config["layers"] = layers + [config["layers"][-1]]
    return config


def update_every_row(config):
    """Adam as in its paper: rows without gradients are updated too. All rows exist from the start."""
    config["optimizer"]["update_type"] = "Global"
    for table in embeddings(config):
        sizes = next(sparse["slot_num"] for sparse in config["layers"][0]["sparse"] if sparse["top"] == table["bottom"])
        slots = config["layers"][0]["slot_size_array"]
        table["sparse_embedding_hparam"].update(index="direct", slot_size_array=slots[:1] if sizes == 1 else slots[-sizes:])
    return config


def mlperf_dcnv2(index, most_rows=4_000_000):
    """DLRM-DCNv2 as MLPerf defines it, with tables that fit on one GPU. Wang et al. 2021, DCN V2, equation 2 with low-rank matrices."""
    config = sample("dlrm/config.json")
    data = set_up(config, "mlperf_dcnv2", 8192, 1200, "bf16")
    rows = [min(rows, most_rows) for rows in MLPERF]
    data["slot_size_array"] = rows
    data["sparse"] = [{"top": "keys", "type": "DistributedSlot", "slot_num": 26, "nnz_per_slot": MLPERF_BAGS}]
    config["optimizer"] = {"type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.005, "initial_accu_value": 0.0, "epsilon": 1e-8}}
    table = embeddings(config)[0]
    table.update(bottom="keys", top="embedding")
    table["sparse_embedding_hparam"].update(slot_size_array=rows, embedding_vec_size=128, combiner=0, index=index)
    layers, last = [data, table], "dense"
    for i, width in enumerate((512, 256, 128)):
        layers += dense(f"bottom{i}", last, width)
        last = f"bottom{i}_relu"
    layers += [{"name": "vectors", "type": "Reshape", "bottom": "embedding", "top": "vectors", "leading_dim": 26 * 128},
               {"name": "features", "type": "Concat", "bottom": [last, "vectors"], "top": "features"},
               {"name": "cross", "type": "MultiCross", "bottom": "features", "top": "cross", "mc_param": {"num_layers": 3, "projection_dim": 512}}]
    last = "cross"
    for i, width in enumerate((1024, 1024, 512, 256)):
        layers += dense(f"top{i}", last, width)
        last = f"top{i}_relu"
    layers.append({"name": "logits", "type": "InnerProduct", "bottom": last, "top": "logits", "fc_param": {"num_output": 1}})
    config["layers"] = layers + [config["layers"][-1]]
    return config


def sequence_model(name, layer, length=50, width=64):
    """A table with unpooled keys, one layer over the sequence, and a click predicted from all of its steps."""
    config = sample("dlrm/config.json")
    data = set_up(config, name, 4096, 600, "bf16")
    data.pop("slot_size_array", None)
    data["sparse"] = [{"top": "keys", "type": "DistributedSlot", "slot_num": 1, "nnz_per_slot": length}]
    table = embeddings(config)[0]
    table["sparse_embedding_hparam"].update(embedding_vec_size=width, combiner="none")
    hidden_layers = dense("fc1", "flat", 256) + [{"name": "logits", "type": "InnerProduct", "bottom": "fc1_relu", "top": "logits",
                                                  "fc_param": {"num_output": 1}}]
    flat = {"name": "flat", "type": "Reshape", "bottom": "sequence", "top": "flat", "leading_dim": length * width}
    # The dense values are used, to avoid a warning about unused ones.
    wide = [{"name": "dense_logit", "type": "InnerProduct", "bottom": "dense", "top": "dense_logit", "fc_param": {"num_output": 1}},
            {"name": "sum", "type": "Add", "bottom": ["logits", "dense_logit"], "top": "sum"}]
    loss = {**config["layers"][-1], "bottom": ["sum", "label"]}
    config["layers"] = [data, table, layer, flat] + hidden_layers + wide + [loss]
    return config


def large_dlrm(name, gib, gpus, largest_gib=None, **kept):
    """Tables of `gib` GiB in total, with 128 floats per row. One table has `largest_gib`; the others have the
    proportions of MLPerf's tables.
    """
    rows_of = lambda gib: gib * 2**30 / (128 * 4)
    scaled, largest = list(MLPERF), MLPERF.index(max(MLPERF))
    if largest_gib:
        scaled[largest] = 0
    scale = rows_of(gib - (largest_gib or 0)) / sum(scaled)
    rows = [max(3, round(rows * scale)) for rows in scaled]
    if largest_gib:
        rows[largest] = round(rows_of(largest_gib))
    config = dlrm(name, rows, **kept)
    config["solver"].update(gpu=list(range(gpus)), display=1)
    embeddings(config)[0]["sparse_embedding_hparam"]["index"] = "direct"
    return config


def seven_layers(name, path):
    config = sample(path)
    data = set_up(config, name, 16384, 100, "bf16")
    slots = sum(sparse["slot_num"] for sparse in data["sparse"])
    data["slot_size_array"] = [WDL_SLOT] * slots
    for table in embeddings(config):
        slots_here = next(sparse["slot_num"] for sparse in data["sparse"] if sparse["top"] == table["bottom"])
        table["sparse_embedding_hparam"]["slot_size_array"] = [WDL_SLOT] * slots_here
    layers = []
    for layer in config["layers"]:
        if layer["type"] == "InnerProduct" and layer["fc_param"]["num_output"] > 1:
            layer["fc_param"]["num_output"] = 1024
        if layer["name"] == "fc2":
            layer["bottom"] = "more4_relu"
        layers.append(layer)
        if layer["name"] == "dropout1":
            for i in range(5):
                layers += dense(f"more{i}", f"more{i - 1}_relu" if i else "dropout1", 1024)
    config["layers"] = layers
    return config


def wdl(name, precision, raw):
    config = sample("wdl/wdl.json")
    data = set_up(config, name, 16384, 3000, precision)
    data["slot_size_array"] = [WDL_SLOT] * 27
    for sparse in data["sparse"]:
        sparse.update(max_nnz=1, max_feature_num_per_sample=sparse["slot_num"])
        table = next(table for table in embeddings(config) if table["bottom"] == sparse["top"])
        table["sparse_embedding_hparam"]["slot_size_array"] = [WDL_SLOT] * sparse["slot_num"]
    if raw:
        data.pop("check")
        data.update(format="Raw", source="wdl.raw", eval_source="wdl_eval.raw", num_samples=2000000, eval_num_samples=10000, float_label_dense=True)
    else:
        data.update(source="wdl_train.txt", eval_source="wdl_eval.txt")
    return config


KAGGLE = [1461, 558, 335378, 211710, 306, 20, 12136, 634, 4, 51298, 5302, 332600, 3179, 27, 12191, 301211, 11, 4841, 2086, 4, 324273, 17, 16,
          79734, 96, 58622]


def hidden(layers, widths):
    """Replaces the layers from fc1 to the last one before the logits by layers of these widths with ReLU and
    dropout.
    """
    first = next(i for i, layer in enumerate(layers) if layer["name"] == "fc1")
    last = max(i for i, layer in enumerate(layers) if layer["type"] in ("ReLU", "Dropout"))
    bottom, top, stack = layers[first]["bottom"], layers[last]["top"], []
    for i, width in enumerate(widths):
        end = top if i + 1 == len(widths) else f"h{i}_dropout"
        stack += dense(f"h{i}", bottom, width)
        stack.append({"name": end, "type": "Dropout", "rate": 0.5, "bottom": f"h{i}_relu", "top": end})
        bottom = end
    layers[first:last + 1] = stack


def step_model(model, precision):
    """Builds one of the four models of the step table."""
    if model == "dlrm":
        config = dlrm("dlrm", [400000] * 26, top=(1024, 1024, 512, 256))
        set_up(config, "dlrm", 16384, 3000, 1024 if precision == "half" else precision)
        return config
    config = sample("wdl/wdl.json" if model == "wdl" else f"{model}/config.json")
    data = set_up(config, model, 16384, 3000, "bf16" if precision == "half" else precision)
    config["optimizer"] = {"type": "Adam", "update_type": "Local", "adam_hparam": {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-07}}
    if model == "wdl":
        wide, deep = data["sparse"]
        wide.update(max_nnz=2, max_feature_num_per_sample=2)
        data["slot_size_array"] = [sum(KAGGLE)] + KAGGLE
    else:
        data["slot_size_array"] = KAGGLE
    for layer in config["layers"]:
        if layer["type"] == "MultiCross":
            layer["mc_param"]["num_layers"] = 6
    hidden(config["layers"], {"wdl": (1024, 1024), "dcn": (1024, 1024), "deepfm": (400, 400, 400)}[model])
    return config


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    configs = {"dlrm": dlrm("dlrm", [400000] * 26)}
    hybrid = copy.deepcopy(configs["dlrm"])
    embeddings(hybrid)[0]["placement"] = "hybrid"
    configs["dlrm_hybrid"] = hybrid
    configs["dlrm_large"] = large_dlrm("dlrm_large", gib=84.9, gpus=2)
    huge = large_dlrm("dlrm_huge", gib=421, gpus=4, largest_gib=140, batch=4 * 16384, rate=1.0)
    huge["optimizer"]["sgd_hparam"]["warmup_steps"] = 20
    embeddings(huge)[0]["placement"] = "auto"  # "auto" shards a table that does not fit on one GPU
    configs["dlrm_huge"] = huge
    for model, path in (("wdl7", "wdl/wdl.json"), ("dcn7", "dcn/config.json")):
        configs[model] = seven_layers(model, path)
    for precision in ("f32", "tf32", "bf16"):
        configs[f"wdl_{precision}"] = wdl("wdl", precision, raw=False)
        configs[f"wdl_raw_{precision}"] = wdl("wdl_raw", precision, raw=True)
    for index in ("hash", "direct"):
        configs["mlperf_dcnv2" + ("" if index == "hash" else "_direct")] = mlperf_dcnv2(index)
    configs["attention"] = sequence_model("attention", {"name": "attention", "type": "MultiHeadAttention", "bottom": ["embedding"] * 3,
                                                        "top": "sequence", "num_attention_heads": 4})
    configs["gru"] = sequence_model("gru", {"name": "gru", "type": "GRU", "bottom": "embedding", "top": "sequence",
                                            "gru_param": {"num_output": 64, "SeqLength": 50, "vector_size": 64}})
    for model in ("wdl", "dcn", "deepfm"):
        configs[f"step_{model}_half_global"] = update_every_row(step_model(model, "half"))
    for model in ("wdl", "dcn", "deepfm", "dlrm"):
        for precision in ("half", "bf16", "fp8", "tf32", "tf32x3", "f32"):
            config = configs[f"step_{model}_{precision}"] = step_model(model, precision)
            if precision == "fp8":
                config["solver"]["fp8_least_width"] = 1024
    for name, config in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main()
