#!/usr/bin/env python3
"""DLRM in PyTorch with tables of huge_ctr or of TorchRec: dlrm.py [--library torchrec]. Only the import differs between
the two.

A hidden model generates clicks from 13 numbers and 26 power-law ids. Prints the loss, the AUC of held-out samples and
the time per step.
"""

import argparse
import time

import torch
from torch.distributed.optim import _apply_optimizer_in_backward as apply_optimizer_in_backward

IDS, NUMBERS, ROWS = 26, 13, 1000
NAMES = [f"id{i}" for i in range(IDS)]


class DLRM(torch.nn.Module):
    def __init__(self, lib, dim, device):
        super().__init__()
        tables = [
            lib.EmbeddingBagConfig(name=f"table_{name}", embedding_dim=dim, num_embeddings=ROWS, feature_names=[name])
            for name in NAMES
        ]
        self.bags = lib.EmbeddingBagCollection(tables=tables, device=device)
        layer, relu = torch.nn.Linear, torch.nn.ReLU()
        self.bottom = torch.nn.Sequential(layer(NUMBERS, 64), relu, layer(64, dim), relu)
        pairs = (IDS + 1) * IDS // 2
        self.top = torch.nn.Sequential(layer(dim + pairs, 128), relu, layer(128, 1))
        self.register_buffer("pairs", torch.tril_indices(IDS + 1, IDS + 1, -1), persistent=False)

    def forward(self, numbers, keys):
        bottom = self.bottom(numbers)
        vectors = self.bags(keys).values().view(len(numbers), IDS, -1)
        vectors = torch.cat([bottom.unsqueeze(1), vectors], 1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([bottom, dots], 1)).squeeze(1)


class Clicks:
    """Generates batches of numbers, keys and labels; the same for both libraries."""

    def __init__(self, lib, batch, device):
        self.lib, self.batch, self.device = lib, batch, device
        hidden = torch.Generator().manual_seed(1)
        self.of_ids = torch.randn(IDS, ROWS, generator=hidden) / IDS**0.5
        self.of_numbers = torch.randn(NUMBERS, generator=hidden) / NUMBERS**0.5

    def __call__(self, step):
        draw = torch.Generator().manual_seed(100 + step)
        numbers = torch.randn(self.batch, NUMBERS, generator=draw)
        ids = (ROWS ** torch.rand(IDS, self.batch, generator=draw) - 1).long().clamp(max=ROWS - 1)
        score = numbers @ self.of_numbers + self.of_ids.gather(1, ids).sum(0)
        labels = (torch.rand(self.batch, generator=draw) < torch.sigmoid(2 * score)).float()
        lengths = torch.ones(IDS * self.batch, dtype=torch.int32)
        keys = self.lib.KeyedJaggedTensor(NAMES, ids.flatten(), lengths=lengths).to(torch.device(self.device))
        return numbers.to(self.device), keys, labels.to(self.device)


def auc(scores, labels):
    ranks = torch.empty(len(scores), dtype=torch.float64)
    ranks[scores.argsort()] = torch.arange(1, len(scores) + 1, dtype=torch.float64)
    clicked = labels.sum().double()
    return float((ranks[labels == 1].sum() - clicked * (clicked + 1) / 2) / (clicked * (len(labels) - clicked)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=("huge_ctr", "torchrec"), default="huge_ctr")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if options.library == "huge_ctr":
        import huge_ctr.torch as lib
    else:
        import torchrec as lib

    torch.manual_seed(2)
    model = DLRM(lib, options.dim, options.device).to(options.device)
    apply_optimizer_in_backward(torch.optim.Adagrad, model.bags.parameters(), {"lr": 0.1})
    dense = torch.optim.Adam([p for part in (model.bottom, model.top) for p in part.parameters()], lr=1e-3)
    clicks, times = Clicks(lib, options.batch, options.device), []
    for step in range(options.steps):
        numbers, keys, labels = clicks(step)
        start = time.perf_counter()
        dense.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(numbers, keys), labels)
        loss.backward()
        dense.step()
        loss = loss.item()  # waits for the GPU
        times.append(time.perf_counter() - start)
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        held_out = [clicks(1_000_000 + i) for i in range(8)]
        scores = torch.cat([model(numbers, keys).cpu() for numbers, keys, _ in held_out])
    labels = torch.cat([one.cpu() for _, _, one in held_out])
    middle = sorted(times)[len(times) // 2]
    print(f"{options.library}: AUC {auc(scores, labels):.4f}, {1e3 * middle:.2f} ms a step")


if __name__ == "__main__":
    main()
