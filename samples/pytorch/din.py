#!/usr/bin/env python3
"""DIN in PyTorch with growing tables: attention over the items that a user has seen. din.py [--steps 300]

Item ids are arbitrary 64-bit numbers, without a vocabulary. The optimizer's step() updates rows, so gradients of rows
and of dense weights are clipped together. Prints the loss, the AUC of held-out samples and the number of rows.
"""

import argparse

import huge_ctr.torch as hct
import torch
from dlrm import auc

ITEMS, KINDS, MOST = 200, 5, 12


def item_id(items):
    """Converts item numbers to 64-bit ids, as a shop's hashes would be."""
    return items * 0x1E3779B97F4A7C15


class DIN(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.items = hct.EmbeddingCollection(
            [
                hct.EmbeddingConfig(
                    name="items",
                    embedding_dim=dim,
                    feature_names=["candidate", "seen"],
                    weight_init_min=-0.5,
                    weight_init_max=0.5,
                )
            ],
            update="step",
        )
        self.attention = torch.nn.Sequential(torch.nn.Linear(4 * dim, 32), torch.nn.Sigmoid(), torch.nn.Linear(32, 1))
        self.top = torch.nn.Sequential(torch.nn.Linear(2 * dim, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, keys):
        vectors = self.items(keys)
        candidate = vectors["candidate"].values()
        seen = vectors["seen"]
        sample = torch.repeat_interleave(torch.arange(len(candidate)), seen.lengths())
        query = candidate[sample]
        pairs = torch.cat([query, seen.values(), query - seen.values(), query * seen.values()], 1)
        weighted = self.attention(pairs) * seen.values()
        history = torch.zeros_like(candidate).index_add_(0, sample, weighted)
        return self.top(torch.cat([candidate, history], 1)).squeeze(1)


def clicks(step, batch):
    """Generates samples: a user likes one or two kinds of items and has seen some of these; a candidate of such a kind
    is clicked.
    """
    draw = torch.Generator().manual_seed(step)
    likes = torch.randint(0, KINDS, (batch, 2), generator=draw)
    lengths = torch.randint(1, MOST, (batch,), generator=draw)
    sample = torch.repeat_interleave(torch.arange(batch), lengths)
    kind = likes[sample, torch.randint(0, 2, (len(sample),), generator=draw)]
    seen = torch.randint(0, ITEMS // KINDS, (len(sample),), generator=draw) * KINDS + kind
    candidate = torch.randint(0, ITEMS, (batch,), generator=draw)
    fits = (candidate.unsqueeze(1) % KINDS == likes).any(1)
    other = torch.randint(0, ITEMS // KINDS, (batch,), generator=draw) * KINDS + likes[:, 0]
    candidate = torch.where(torch.rand(batch, generator=draw) < 0.4, other, candidate)
    fits |= candidate % KINDS == likes[:, 0]
    labels = (torch.rand(batch, generator=draw) < torch.where(fits, 0.9, 0.1)).float()
    keys = hct.KeyedJaggedTensor(
        ["candidate", "seen"],
        item_id(torch.cat([candidate, seen])),
        lengths=torch.cat([torch.ones_like(lengths), lengths]),
    )
    return keys, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--dim", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(2)
    model = DIN(options.dim)
    rows = hct.optimizer(model, torch.optim.Adam, lr=0.05)
    dense = torch.optim.Adam([*model.attention.parameters(), *model.top.parameters()], lr=0.005)
    data = hct.Prefetching((clicks(step, options.batch) for step in range(options.steps)), model.items, lambda b: b[0])
    for step, (keys, labels) in enumerate(data):
        for one in (rows, dense):
            one.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(keys), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for one in (rows, dense):
            one.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        held_out = [clicks(1_000_000 + i, options.batch) for i in range(8)]
        scores = torch.cat([model(keys) for keys, _ in held_out])
    labels = torch.cat([one for _, one in held_out])
    print(f"AUC {auc(scores, labels):.4f}, {model.items.rows('items')} rows")


if __name__ == "__main__":
    main()
