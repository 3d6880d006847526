#!/usr/bin/env python3
"""Triton kernels that update the looked-up rows of a table, for the PyTorch side of compare_pytorch.py.

    tools/bench/table_kernels.py                       compares them with PyTorch's own operators, on a GPU
    TRITON_INTERPRET=1 tools/bench/table_kernels.py    the same on a CPU, with Triton's interpreter

Nothing is sorted: gradients of equal rows are added with atomics, and one look-up of each row then updates the row.
This is the fastest known way in PyTorch; sums depend on the order of the atomics. Needs torch and triton.
"""
import sys

import torch
import triton
import triton.language as tl

ELEMENTS = 512  # elements per program: four for each thread of four warps


@triton.jit
def add_rows_kernel(gradients, index, sums, owner, lookups, scale, width: tl.constexpr, padded: tl.constexpr, block: tl.constexpr, owned: tl.constexpr):
    """sums[index[i]] += scale * gradients[i]; with `owned`, owner[row] = one i with index[i] == row."""
    i = tl.program_id(0) * block + tl.arange(0, block)
    there = i < lookups
    row = tl.load(index + i, mask=there, other=0)
    if owned:
        tl.store(owner + row, i, mask=there)
    column = tl.arange(0, padded)[None, :]
    both = there[:, None] & (column < width)
    gradient = tl.load(gradients + i.to(tl.int64)[:, None] * width + column, mask=both, other=0.0).to(tl.float32)
    tl.atomic_add(sums + row[:, None] * width + column, gradient * scale, mask=both, sem="relaxed")


@triton.jit
def adam_kernel(index, owner, sums, table, first, second, step, lookups, rate, beta1, beta2, epsilon, width: tl.constexpr, padded: tl.constexpr,
                block: tl.constexpr):
    """Applies Adam once to each row that occurs in `index`, like torch.optim.SparseAdam, and resets the row's sum to
    zero.
    """
    i = tl.program_id(0) * block + tl.arange(0, block)
    there = i < lookups
    row = tl.load(index + i, mask=there, other=0)
    chosen = there & (tl.load(owner + row, mask=there, other=-1) == i)
    column = tl.arange(0, padded)[None, :]
    both = chosen[:, None] & (column < width)
    at = row[:, None] * width + column
    g = tl.load(sums + at, mask=both, other=0.0)
    m = beta1 * tl.load(first + at, mask=both, other=0.0) + (1 - beta1) * g
    v = beta2 * tl.load(second + at, mask=both, other=0.0) + (1 - beta2) * g * g
    count = tl.load(step)
    factor = rate * tl.sqrt(1 - tl.exp2(count * tl.log2(beta2))) / (1 - tl.exp2(count * tl.log2(beta1)))
    tl.store(table + at, tl.load(table + at, mask=both, other=0.0) - factor * m / (tl.sqrt(v) + epsilon), mask=both)
    tl.store(first + at, m, mask=both)
    tl.store(second + at, v, mask=both)
    tl.store(sums + at, tl.zeros_like(g), mask=both)


def launch(index, width):
    """The grid, and the compile-time constants of kernels for rows of this width."""
    padded = triton.next_power_of_2(width)
    block = max(1, ELEMENTS // padded)
    return (triton.cdiv(index.numel(), block),), {"width": width, "padded": padded, "block": block}


class AdamTable:
    """A table [rows, width] f32 with Adam's states. index: i64 [n]; gradients: any float type [n, width]; step: f32 [], counts from 1."""

    def __init__(self, table, rate, betas, epsilon):
        self.table, self.hyper = table, (rate, *betas, epsilon)
        self.sums, self.first, self.second = (torch.zeros_like(table) for _ in range(3))
        self.owner = torch.zeros(len(table), dtype=torch.int32, device=table.device)

    def update(self, index, gradients, step):
        grid, shape = launch(index, self.table.shape[1])
        add_rows_kernel[grid](gradients, index, self.sums, self.owner, index.numel(), 1.0, owned=True, **shape)
        adam_kernel[grid](index, self.owner, self.sums, self.table, self.first, self.second, step, index.numel(), *self.hyper, **shape)


def sgd_update(table, index, gradients, rate):
    """table[index[i]] -= rate * gradients[i]."""
    grid, shape = launch(index, table.shape[1])
    add_rows_kernel[grid](gradients, index, table, table, index.numel(), -rate, owned=False, **shape)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    for width in (1, 11, 16, 128):
        start = torch.randn(300, width, device=device)
        batches = [(torch.randint(0, 300, (100,), device=device), torch.randn(100, width, device=device)) for _ in range(3)]
        ours, theirs = AdamTable(start.clone(), 1e-3, (0.9, 0.999), 1e-7), start.clone().requires_grad_()
        sparse = torch.optim.SparseAdam([theirs], lr=1e-3, betas=(0.9, 0.999), eps=1e-7)
        plain, expected = start.clone(), start.clone()
        for number, (index, gradients) in enumerate(batches, 1):
            ours.update(index, gradients, torch.tensor(float(number), device=device))
            theirs.grad = torch.sparse_coo_tensor(index[None], gradients, start.shape)
            sparse.step()
            sgd_update(plain, index, gradients, 0.3)
            expected.index_add_(0, index, gradients, alpha=-0.3)
        for name, a, b in (("Adam", ours.table, theirs.detach()), ("SGD", plain, expected)):
            difference = float((a - b).abs().max())
            print(f"{name}, rows of {width}: largest difference from PyTorch {difference:.1e} after {len(batches)} steps")
            if not difference < 1e-5:
                sys.exit(f"{name} of rows of {width} is wrong")
        if float(ours.sums.abs().max()) != 0:
            sys.exit("sums of gradients are left")


if __name__ == "__main__":
    main()
