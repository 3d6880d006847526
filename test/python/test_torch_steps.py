"""A hundred random steps of huge_ctr.torch against torch.nn and torch.optim: every optimizer, pooling and update."""

import itertools
import unittest

import support

support.need("torch")
import huge_ctr.torch as hct  # noqa: E402
import torch  # noqa: E402

DEVICE = support.torch_device()
torch.set_num_threads(1)  # the operators are small, so synchronizing threads costs more than computing
ROWS, DIM, STEPS = 30, 5, 100
# Our optimizer, the torch optimizer, and its arguments. With dense gradients, torch also updates rows that are not in
# the batch (rows="global"). torch's AdamW multiplies by 1 - lr * weight_decay, which is exact in fp32 here, and then
# subtracts the Adam step. Our AdamW subtracts both in one operation.
OPTIMIZERS = [
    ("sgd", torch.optim.SGD, {"lr": 0.05}),
    ("sgd", torch.optim.SGD, {"lr": 0.02, "momentum": 0.9, "rows": "global"}),
    ("sgd", torch.optim.SGD, {"lr": 0.02, "momentum": 0.8, "nesterov": True, "rows": "global"}),
    ("adagrad", torch.optim.Adagrad, {"lr": 0.05}),
    ("adagrad", torch.optim.Adagrad, {"lr": 0.05, "initial_accumulator_value": 0.1, "eps": 1e-6}),
    ("rmsprop", torch.optim.RMSprop, {"lr": 0.005, "alpha": 0.9, "rows": "global"}),
    ("adam", torch.optim.Adam, {"lr": 0.01, "betas": (0.8, 0.95), "rows": "global"}),
    ("sparse_adam", torch.optim.SparseAdam, {"lr": 0.01}),
    ("adamw", torch.optim.AdamW, {"lr": 2**-7, "weight_decay": 0.125, "rows": "global"}),
    ("adamax", torch.optim.Adamax, {"lr": 0.01, "rows": "global"}),
    ("adadelta", torch.optim.Adadelta, {"lr": 0.5, "rho": 0.8, "rows": "global"}),
]
MODES = [("sum", False), ("sum", True), ("mean", False), ("max", False)]


def difference(ours, theirs):
    """The largest difference; relative for elements of magnitude above 1."""
    return float(((ours - theirs).abs() / theirs.abs().clamp(min=1)).max())


class Steps(unittest.TestCase):
    def bags(self, draw, weighted, dtype):
        lengths = torch.randint(0, 5, (8,), generator=draw)
        keys = torch.randint(0, ROWS, (int(lengths.sum()),), generator=draw).to(dtype)
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        weights = torch.rand(len(keys), generator=draw) if weighted else None
        return keys, offsets, weights

    def run_both(self, kind, torch_kind, words, mode, weighted, update, dtype, steps=STEPS):
        draw = torch.Generator(DEVICE).manual_seed(len(kind) * 10 + len(mode))
        rows = torch.randn(ROWS, DIM, generator=draw)
        ours = hct.EmbeddingBag(ROWS, DIM, mode=mode, include_last_offset=True, _weight=rows)
        step = hct.optimizer(ours, kind, update=update, **words)
        sparse = torch_kind is torch.optim.SparseAdam
        theirs = torch.nn.EmbeddingBag(
            ROWS, DIM, mode=mode, include_last_offset=True, _weight=rows.clone(), sparse=sparse and mode != "max"
        )
        theirs_step = torch_kind(theirs.parameters(), **{k: v for k, v in words.items() if k != "rows"})
        most = 0.0
        for _ in range(steps):
            keys, offsets, weights = self.bags(draw, weighted, dtype)
            target = torch.randn(8, DIM, generator=draw)
            grads = []
            for model, optimizer in ((ours, step), (theirs, theirs_step)):
                of_weights = None if weights is None else weights.clone().requires_grad_()
                optimizer.zero_grad()
                out = model(keys, offsets, of_weights)
                (out - target).square().mean().backward()
                optimizer.step()
                grads.append((out.detach(), None if of_weights is None else of_weights.grad))
            most = max(most, difference(grads[0][0], grads[1][0]))
            if weighted and len(keys):
                most = max(most, difference(grads[0][1], grads[1][1]))
        return max(most, difference(ours.weight, theirs.weight.detach()))

    def test_every_optimizer_pooling_and_update_is_that_of_torch(self):
        worst = {}
        for (kind, torch_kind, words), (mode, weighted), update in itertools.product(
            OPTIMIZERS, MODES, ("backward", "step")
        ):
            if kind == "sparse_adam" and mode == "max":
                continue  # torch has no sparse gradient of max pooling
            dtype = torch.int32 if update == "step" else torch.int64
            found = self.run_both(kind, torch_kind, words, mode, weighted, update, dtype)
            worst[kind] = max(worst.get(kind, 0.0), found)
            with self.subTest(kind=kind, words=words, mode=mode, weighted=weighted, update=update):
                self.assertLess(found, 3e-6 if kind == "adamw" else 1e-6)
        print("largest differences:", {kind: f"{value:.1e}" for kind, value in worst.items()})

    def test_row_wise_adagrad_is_its_formula(self):
        rows = torch.randn(ROWS, DIM, generator=torch.Generator(DEVICE).manual_seed(1))
        ours = hct.EmbeddingBag(ROWS, DIM, mode="sum", _weight=rows, optimizer="rowwise_adagrad", lr=0.1)
        want, sums = rows.clone(), torch.zeros(ROWS)
        for step in range(20):
            keys = torch.randint(0, ROWS, (6, 3), generator=torch.Generator(DEVICE).manual_seed(step))
            ours(keys).square().sum().backward()
            weight = want.clone().requires_grad_()
            torch.nn.functional.embedding_bag(keys, weight, mode="sum").square().sum().backward()
            sums += weight.grad.square().mean(1)
            want -= 0.1 * weight.grad / (sums.sqrt() + 1e-8).unsqueeze(1)
        self.assertLess(float((ours.weight - want).abs().max()), 1e-5)

    def test_embedding_is_that_of_torch(self):
        for update, padding in itertools.product(("backward", "step"), (None, 3, -1)):
            draw = torch.Generator(DEVICE).manual_seed(5)
            rows = torch.randn(ROWS, DIM, generator=draw)
            ours = hct.Embedding(ROWS, DIM, padding_idx=padding, _weight=rows)
            theirs = torch.nn.Embedding(ROWS, DIM, padding_idx=padding, _weight=rows.clone())
            pair = [
                (ours, hct.optimizer(ours, torch.optim.Adagrad, lr=0.1, update=update)),
                (theirs, torch.optim.Adagrad(theirs.parameters(), lr=0.1)),
            ]
            for _ in range(20):
                keys = torch.randint(0, ROWS, (4, 3), generator=draw)
                outs = []
                for model, optimizer in pair:
                    optimizer.zero_grad()
                    outs.append(model(keys))
                    outs[-1].square().sum().backward()
                    optimizer.step()
                self.assertEqual(outs[0].shape, outs[1].shape)
                self.assertLess(float((outs[0] - outs[1]).abs().max()), 1e-6)
            self.assertLess(float((ours.weight - theirs.weight).abs().max()), 1e-6)

    def test_two_byte_rows_stay_near(self):
        for dtype, near in ((torch.float16, 2e-2), (torch.bfloat16, 0.15)):
            rows = torch.randn(ROWS, DIM, generator=torch.Generator(DEVICE).manual_seed(2))
            ours = hct.EmbeddingBag(
                ROWS, DIM, mode="sum", dtype=dtype, _weight=rows.to(dtype), optimizer="sgd", lr=0.01
            )
            full = hct.EmbeddingBag(ROWS, DIM, mode="sum", _weight=rows, optimizer="sgd", lr=0.01)
            for step in range(20):
                keys = torch.randint(0, ROWS, (6, 3), generator=torch.Generator(DEVICE).manual_seed(step))
                for model in (ours, full):
                    model(keys).float().square().mean().backward()
            self.assertEqual(ours(keys).dtype, dtype)
            self.assertLess(float((ours.weight.float() - full.weight).abs().max()), near)

    def test_two_runs_give_equal_bytes(self):
        def run():
            tables = [hct.EmbeddingBagConfig(name="t", embedding_dim=4, feature_names=["a", "b"])]
            bags = hct.EmbeddingBagCollection(tables, optimizer="adam", lr=0.1, seed=3)
            draw = torch.Generator(DEVICE).manual_seed(9)
            for _ in range(10):
                lengths = torch.randint(0, 4, (16,), generator=draw)
                keys = torch.randint(-(2**62), 2**62, (int(lengths.sum()),), generator=draw) % 50
                bags(hct.KeyedJaggedTensor(["a", "b"], keys, lengths=lengths)).values().square().sum().backward()
            return [one.numpy().tobytes() for one in bags.export("t")]

        self.assertEqual(run(), run())


if __name__ == "__main__":
    unittest.main()
