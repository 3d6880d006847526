"""The traced models in plain tensor operations.

A model is a function of w and batch. w(*shape) returns the next dense weights of the model file. batch maps names to
tensors: "dense", "label", and each embedding's output [samples, slots, dim]. The function returns (loss, lambda of the
L2 penalty).
"""
import torch


def fc(w, x, width):
    return x @ w(x.shape[1], width) + w(width)


def bce(logits, label):
    return (logits.clamp(min=0) - logits * label + torch.log1p(torch.exp(-logits.abs()))).mean()


def flat(x):
    return x.reshape(x.shape[0], -1)


def wdl(w, batch):
    x = torch.cat([flat(batch["deep"]), batch["dense"]], 1)
    x = torch.relu(fc(w, x, 24))
    x = torch.relu(fc(w, x, 12))
    return bce(fc(w, x, 1) + flat(batch["wide"]), batch["label"]), 0.01


def dcn(w, batch):
    x = torch.cat([flat(batch["embedding"]), batch["dense"]], 1)
    y = x
    for _ in range(3):
        weights, bias = w(1, x.shape[1]), w(1, x.shape[1])
        y = x * (y @ weights.T) + y + bias
    deep = torch.relu(fc(w, torch.relu(fc(w, x, 20)), 10))
    return bce(fc(w, torch.cat([y, deep], 1), 1), batch["label"]), 0


def deepfm(w, batch):
    vectors, first_order = batch["embedding"][:, :, :4], batch["embedding"][:, :, 4]
    dense_vectors = batch["dense"][:, :, None] * w(6, 4)[None]
    dense_first_order = batch["dense"] * w(6, 1).T
    e = torch.cat([vectors, dense_vectors], 1)
    deep = fc(w, torch.relu(fc(w, torch.relu(fc(w, flat(e), 16)), 16)), 1)
    pairs = (e.sum(1) ** 2 - (e ** 2).sum(1)) / 2
    first = torch.cat([first_order, dense_first_order], 1)
    return bce(deep + pairs.sum(1, keepdim=True) + first.sum(1, keepdim=True), batch["label"]), 0


def dlrm(w, batch):
    bottom = torch.relu(fc(w, torch.relu(fc(w, batch["dense"], 16)), 6))
    v = torch.cat([bottom[:, None], batch["embedding"]], 1)
    pairs = [(v[:, r] * v[:, c]).sum(1, keepdim=True) for c in range(v.shape[1]) for r in range(c)]
    x = torch.cat([bottom, *pairs, torch.zeros_like(pairs[0])], 1)
    return bce(fc(w, torch.relu(fc(w, torch.relu(fc(w, x, 16)), 8)), 1), batch["label"]), 0


def dcnv2_lowrank(w, batch):
    """Cross layers with low-rank matrices U V, followed by the deep network."""
    x = torch.cat([flat(batch["embedding"]), batch["dense"]], 1)
    y = x
    for _ in range(2):
        u, v, bias = w(x.shape[1], 4), w(4, x.shape[1]), w(x.shape[1])
        y = x * (y @ u @ v + bias) + y
    return bce(fc(w, torch.relu(fc(w, torch.relu(fc(w, y, 16)), 8)), 1), batch["label"]), 0


def dcnv2_full(w, batch):
    """Cross layers with full matrices, in parallel with the deep network."""
    x = torch.cat([flat(batch["embedding"]), batch["dense"]], 1)
    y = x
    for _ in range(2):
        matrix, bias = w(x.shape[1], x.shape[1]), w(x.shape[1])
        y = x * (y @ matrix + bias) + y
    deep = torch.relu(fc(w, torch.relu(fc(w, x, 16)), 8))
    return bce(fc(w, torch.cat([y, deep], 1), 1), batch["label"]), 0


def multitask(w, batch):
    """A shared bottom MLP, and one tower for each of two labels."""
    x = torch.cat([flat(batch["embedding"]), batch["dense"]], 1)
    shared = torch.relu(fc(w, x, 20))
    losses = []
    for label in range(2):
        tower = torch.nn.functional.elu(fc(w, shared, 8), alpha=0.5)
        losses.append(bce(fc(w, tower, 1), batch["label"][:, label : label + 1]))
    return losses[0] + 0.4 * losses[1], 0.005
