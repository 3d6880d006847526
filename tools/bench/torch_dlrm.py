"""The dense part of DLRM, with the layer sizes of MLPerf."""

import torch


class Model(torch.nn.Module):
    """DLRM: 13 numbers through the bottom layers, products of all pairs of vectors, and the top layers."""

    def __init__(self, tables, dim):
        super().__init__()
        self.bottom, self.tables = layers(13, 512, 256, dim), tables
        self.top = layers(dim + tables * (tables + 1) // 2, 1024, 1024, 512, 256, 1)
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1), persistent=False)

    def forward(self, numbers, vectors):
        bottom = self.bottom(numbers)
        all_vectors = torch.cat([bottom.unsqueeze(1), vectors.view(len(numbers), self.tables, -1)], 1)
        dots = torch.bmm(all_vectors, all_vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([bottom, dots], 1)).squeeze(1)


def layers(*sizes):
    parts = []
    for before, after in zip(sizes, sizes[1:]):
        parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])
