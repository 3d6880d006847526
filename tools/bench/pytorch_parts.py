"""The networks and batches of the PyTorch side of compare_pytorch.py."""

import torch
from torch import nn


class Linear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


def stack(widths, dropout):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [Linear(a, b), nn.ReLU()] + ([nn.Dropout(0.5)] if dropout else [])
    return nn.Sequential(*layers)


class WideAndDeep(nn.Module):
    def __init__(self, slots):
        super().__init__()
        self.deep, self.last = stack((16 * slots + 13, 1024, 1024), True), Linear(1024, 1)

    def forward(self, rows, wide, dense):
        return self.last(self.deep(torch.cat([rows.flatten(1), dense], 1))).squeeze(1) + wide


class DeepAndCross(nn.Module):
    def __init__(self, slots):
        super().__init__()
        width = 16 * slots + 13
        self.deep, self.last = stack((width, 1024, 1024), True), Linear(1024 + width, 1)
        self.w = nn.ParameterList([nn.Parameter(torch.randn(width) * 0.03) for _ in range(6)])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(width)) for _ in range(6)])

    def forward(self, rows, wide, dense):
        x0 = torch.cat([rows.flatten(1), dense], 1)
        x = x0
        for w, b in zip(self.w, self.b):
            x = x0 * (x * w.to(x.dtype)).sum(1, keepdim=True) + b.to(x.dtype) + x
        return self.last(torch.cat([self.deep(x0), x], 1)).squeeze(1)


class DeepFm(nn.Module):
    def __init__(self, slots):
        super().__init__()
        self.deep, self.last = stack((10 * (slots + 13), 400, 400, 400), True), Linear(400, 1)
        self.vectors, self.weights = nn.Parameter(torch.randn(13, 10) * 0.1), nn.Parameter(torch.randn(13) * 0.1)

    def forward(self, rows, wide, dense):
        vectors = torch.cat([rows[:, :, :10], dense.unsqueeze(2) * self.vectors.to(dense.dtype)], 1)
        terms = vectors.float()
        squares = 0.5 * (terms.sum(1).square() - terms.square().sum(1)).sum(1)
        first = rows[:, :, 10].float().sum(1) + (dense * self.weights.to(dense.dtype)).float().sum(1)
        return self.last(self.deep(vectors.flatten(1))).squeeze(1) + squares + first


class DlrmBelow(nn.Module):
    def __init__(self, zeros):
        super().__init__()
        self.zeros, self.bottom = zeros, stack((13, 512, 256, 128), False)

    def forward(self, rows, dense):
        bottom = self.bottom(dense)
        zeros = [rows.new_zeros(len(rows), self.zeros, rows.shape[2])] if self.zeros else []
        return torch.cat([bottom.unsqueeze(1), rows, *zeros], 1), bottom


class DlrmAbove(nn.Module):
    def __init__(self, pairs):
        super().__init__()
        self.top, self.last = stack((128 + pairs + 1, 1024, 1024, 512, 256), False), Linear(256, 1)

    def forward(self, products, bottom):
        return self.last(self.top(torch.cat([bottom, products, products.new_zeros(len(products), 1)], 1))).squeeze(1)


class Dlrm(nn.Module):
    """`vectors`: number of vectors in the GEMMs. Vectors after the first slots + 1 are zeros."""

    def __init__(self, slots, vectors=None):
        super().__init__()
        used = slots + 1
        self.count = vectors or used
        self.below, self.above = DlrmBelow(self.count - used), DlrmAbove(used * slots // 2)
        i, j = torch.tril_indices(used, used, -1)
        back = torch.full((self.count, self.count), len(i))
        back[i, j] = back[j, i] = torch.arange(len(i))
        self.register_buffer("places", i * self.count + j)  # index of each pair among the products
        # for each product, the index of its pair; a product of a vector with itself or with padding has the index
        # after the last pair
        self.register_buffer("pairs", back.flatten())

    def products(self, vectors):
        return torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1).index_select(1, self.places)

    def products_backward(self, vectors, gradient):
        """A backward pass of our own, because autograd would add each gradient with an atomic."""
        whole = torch.cat([gradient, gradient.new_zeros(len(gradient), 1)], 1).index_select(1, self.pairs)
        return torch.bmm(whole.view(-1, self.count, self.count), vectors)

    def forward(self, rows, wide, dense):
        vectors, bottom = self.below(rows, dense)
        return self.above(PairProducts.apply(vectors, self), bottom)


class PairProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, vectors, net):
        ctx.net = net
        ctx.save_for_backward(vectors)
        return net.products(vectors)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.net.products_backward(*ctx.saved_tensors, gradient), None


def network(model, slots, vectors=None):
    """The dense part. forward(rows [batch, slots, dim], wide [batch] or None, dense [batch, 13]) returns logits [batch]
    in the dtype of its inputs; weights are f32. `vectors`: as for Dlrm.
    """
    if model == "dlrm":
        return Dlrm(slots, vectors)
    return {"wdl": WideAndDeep, "dcn": DeepAndCross, "deepfm": DeepFm}[model](slots)


class Batches:
    """A pool of batches on the device: row numbers [batch, slots]; for Wide & Deep also row numbers [batch, 2] of a
    one-column table; dense values [batch, 13], labels [batch]. A batch is one array, so a CUDA graph needs only one
    copy.
    """

    def __init__(self, pool, batch, sizes, wide, alpha, device):
        self.batch, self.slots, self.wide, self.device = batch, len(sizes), 2 if wide else 0, device
        keys = [self.draw(pool * batch, sizes, alpha)]
        if wide:
            keys.append(self.draw(pool * batch, [sum(sizes) // 2, sum(sizes) - sum(sizes) // 2], alpha))
        keys = [k.view(pool, -1) for k in keys]
        numbers = torch.cat([torch.rand(pool, batch * 13), torch.randint(0, 2, (pool, batch)).float()], 1)
        self.pool = torch.cat([*keys, numbers.view(torch.int64).to(device)], 1)
        self.current = self.pool[0].clone()

    def draw(self, count, sizes, alpha):
        """Draws row numbers [count, sizes] for concatenated slots. The density of the k-th key of a slot is ~ (k +
        1)^-alpha.
        """
        size = torch.tensor(sizes, dtype=torch.float64, device=self.device)
        key = ((1 - torch.rand(count, len(sizes), dtype=torch.float64, device=self.device) * (1 - (size + 1) ** (1 - alpha))) ** (1 / (1 - alpha)) - 1).long()
        base = torch.tensor([0, *sizes[:-1]], device=self.device).cumsum(0)
        return torch.minimum(key, size.long() - 1) * 7919 % size.long() + base

    def load(self, number):
        self.current.copy_(self.pool[number % len(self.pool)])

    def indices(self):
        end = self.batch * self.slots
        index = [self.current[:end].view(self.batch, self.slots)]
        return index + ([self.current[end:end + self.batch * self.wide].view(self.batch, self.wide)] if self.wide else [])

    def numbers(self):
        numbers = self.current[self.batch * (self.slots + self.wide):].view(torch.float32)
        return numbers[:13 * self.batch].view(self.batch, 13), numbers[13 * self.batch:]
