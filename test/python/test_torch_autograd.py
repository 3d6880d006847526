"""Autograd of huge_ctr.torch: eager, compiled, exported, checkpointed, in DDP; updates in backward() and in step()."""

import copy
import os
import tempfile
import unittest
import unittest.mock

import support

support.need("torch")
import huge_ctr.torch as hct  # noqa: E402
import torch  # noqa: E402
from huge_ctr import UsageError  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

DEVICE = support.torch_device()
torch.set_num_threads(1)
ROWS = torch.randn(40, 4, generator=torch.Generator(DEVICE).manual_seed(1))


def bag(**words):
    return hct.EmbeddingBag(40, 4, mode="sum", _weight=ROWS, **words)


def batches(count=4, seed=2):
    draw = torch.Generator(DEVICE).manual_seed(seed)
    return [torch.randint(0, 40, (6, 3), generator=draw) for _ in range(count)]


class Model(torch.nn.Module):
    def __init__(self, **words):
        super().__init__()
        torch.manual_seed(3)
        self.bags, self.top = bag(**words), torch.nn.Linear(4, 1)

    def forward(self, keys):
        return self.top(torch.relu(self.bags(keys))).square().mean()


def train(run, model, count=4):
    dense = torch.optim.SGD(model.top.parameters(), lr=0.1)
    for keys in batches(count):
        dense.zero_grad()
        run(keys).backward()
        dense.step()
    return model.bags.weight, model.top.weight.detach()


class Graphs(unittest.TestCase):
    def same(self, ours, theirs, near=1e-6):
        for one, other in zip(ours, theirs):
            self.assertLess(float((one - other).abs().max()), near)

    def test_compiled_steps_are_those_of_eager(self):
        want = train(*(lambda m: (m, m))(Model(optimizer="adam", lr=0.1)))
        for backend in ("aot_eager", "inductor"):
            torch._dynamo.reset()
            model = Model(optimizer="adam", lr=0.1)
            self.same(train(torch.compile(model, backend=backend, fullgraph=True), model), want)

    def test_samples_may_differ_in_a_compiled_graph(self):
        model = Model(optimizer="sgd", lr=0.1)
        other = Model(optimizer="sgd", lr=0.1)
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=True)
        for samples in (6, 3, 9):
            keys = torch.arange(samples * 2).view(samples, 2)
            compiled(keys).backward()
            other(keys).backward()
        self.same([model.bags.weight], [other.bags.weight])

    def test_collections_compile(self):
        def make():
            tables = [
                hct.EmbeddingBagConfig(name="a", embedding_dim=4, feature_names=["x", "y"]),
                hct.EmbeddingBagConfig(name="b", embedding_dim=3, num_embeddings=9, feature_names=["y"]),
            ]
            return hct.EmbeddingBagCollection(tables, optimizer="adam", lr=0.1)

        def step(bags):
            return lambda kjt: bags(kjt).values().square().sum()

        ours, theirs = make(), make()
        compiled = torch.compile(step(ours), backend="aot_eager", fullgraph=True)
        for seed in range(3):
            draw = torch.Generator(DEVICE).manual_seed(seed)
            lengths = torch.randint(0, 3, (10,), generator=draw)
            keys = torch.randint(0, 9, (int(lengths.sum()),), generator=draw)
            kjt = hct.KeyedJaggedTensor.from_lengths_sync(["y", "x"], keys, lengths)
            compiled(kjt).backward()
            step(theirs)(kjt).backward()
        for table in ("a", "b"):
            self.same(ours.export(table), theirs.export(table))

    def test_export_keeps_the_look_up_as_a_node(self):
        model = Model(optimizer="sgd", lr=0.1).eval()
        keys = batches(1)[0]
        program = torch.export.export(model, (keys,))
        self.assertIn("huge_ctr.lookup", str(program.graph))
        self.assertEqual(program.module()(keys).item(), model(keys).item())

    def test_recomputed_forwards_update_once(self):
        for update in ("backward", "step"):
            models = [Model(), Model()]
            steps = [hct.optimizer(one, "adam", lr=0.1, update=update) for one in models]
            for keys in batches(3):
                checkpoint(models[0], keys, use_reentrant=False).backward()
                models[1](keys).backward()
                for step in steps:
                    step.step()
                    step.zero_grad()
            self.assertTrue(torch.equal(models[0].bags.weight, models[1].bags.weight))
            self.assertEqual(models[0].bags._engine.set().updates, 3)

    def test_recomputing_counts_a_key_once(self):
        bags = hct.EmbeddingBag(None, 4, mode="sum", optimizer="sgd", lr=0.1, min_count=2)
        top = torch.nn.Linear(4, 1)
        keys = torch.tensor([[7], [8]])
        checkpoint(lambda x: top(bags(x)), keys, use_reentrant=False).sum().backward()
        self.assertEqual(bags.rows("weight"), 0)
        checkpoint(lambda x: top(bags(x)), keys, use_reentrant=False).sum().backward()
        self.assertEqual(bags.rows("weight"), 2)

    def test_a_second_backward_of_one_forward_is_an_error(self):
        for update in ("backward", "step"):
            bags = bag(optimizer="sgd", lr=0.1, update=update)
            step = hct.optimizer(bags)
            out = bags(batches(1)[0]).sum()
            out.backward(retain_graph=True)
            with self.assertRaisesRegex(UsageError, "second backward"):
                out.backward()
            step.step()

    def test_two_forwards_are_two_updates(self):
        bags, other = bag(optimizer="sgd", lr=0.1), bag(optimizer="sgd", lr=0.1)
        first, second = batches(2)
        (bags(first).sum() + bags(second).sum()).backward()
        for keys in (second, first):
            other(keys).sum().backward()
        self.assertLess(float((bags.weight - other.weight).abs().max()), 1e-6)
        self.assertEqual(bags._engine.set().updates, 2)

    def test_a_forward_without_backward_changes_nothing(self):
        bags, other = bag(optimizer="adam", lr=0.1), bag(optimizer="adam", lr=0.1)
        for keys in batches(5):
            bags(keys)
            for one in (bags, other):
                one(keys).sum().backward()
        self.assertTrue(torch.equal(bags.weight, other.weight))

    def test_reading_never_inserts(self):
        bags = hct.EmbeddingBag(None, 4, mode="sum", optimizer="sgd", lr=0.1)
        bags(torch.tensor([[1, 2]])).sum().backward()
        with torch.no_grad():
            self.assertEqual(float(bags(torch.tensor([[77]])).abs().sum()), 0)
        bags.eval()
        self.assertEqual(float(bags(torch.tensor([[78]])).detach().abs().sum()), 0)
        self.assertFalse(bags(torch.tensor([[1]])).requires_grad)
        self.assertEqual(bags.rows("weight"), 2)

    def test_memory_is_reserved_before_a_step(self):
        bags, other = bag(optimizer="adam", lr=0.1), bag(optimizer="adam", lr=0.1)
        for keys in batches(2):
            bags.reserve(6, [18])
            for one in (bags, other):
                one(keys).sum().backward()
        self.assertTrue(torch.equal(bags.weight, other.weight))

    def test_frozen_tables_stay(self):
        bags = hct.EmbeddingBag.from_pretrained(ROWS, mode="sum")
        weights = torch.rand(6, 3, requires_grad=True)
        keys = batches(1)[0]
        bags(keys, per_sample_weights=weights).sum().backward()
        want = torch.nn.functional.embedding_bag(keys, ROWS, mode="sum", per_sample_weights=weights.detach())
        self.assertLess(float((bags(keys, per_sample_weights=weights.detach()) - want).abs().max()), 1e-6)
        self.assertLess(float((weights.grad - ROWS[keys].sum(2)).abs().max()), 1e-5)
        self.assertTrue(torch.equal(bags.weight, ROWS))

    def test_the_gradient_of_the_anchor_stays_zero(self):
        """Backward passes share one zero gradient. A value that a caller writes to it must not reach a later pass."""
        model = bag(optimizer="sgd", lr=0.1)
        for write in (lambda grad: grad.fill_(float("nan")), lambda grad: grad.add_(3), lambda grad: None):
            model.anchor.grad = None
            model(batches(1)[0]).sum().backward()
            self.assertEqual(model.anchor.grad.tolist(), [0.0])
            with torch.no_grad():
                write(model.anchor.grad)
        model.anchor.grad.fill_(2)
        model(batches(1)[0]).sum().backward()  # PyTorch adds this gradient to the existing one
        self.assertEqual(model.anchor.grad.tolist(), [2.0])

    def test_training_without_an_optimizer_says_so(self):
        with self.assertRaisesRegex(UsageError, "optimizer="):
            bag()(batches(1)[0]).sum().backward()
        bags = bag(optimizer="sgd", update="step")  # without our optimizer no row would be updated
        with self.assertRaisesRegex(UsageError, "no huge_ctr.torch.optimizer"):
            bags(batches(1)[0]).sum().backward()

    def test_the_operators_pass_opcheck(self):
        bags = bag(optimizer="sgd", lr=0.1)
        keys = batches(1)[0].flatten()
        arguments = (bags.anchor, keys, torch.arange(0, 19, 3), None, [0], None, bags._number, 6, True, True, 4)
        tests = ("test_schema", "test_autograd_registration", "test_faketensor")
        torch.library.opcheck(torch.ops.huge_ctr.lookup.default, arguments, test_utils=tests)

    def test_gradients_of_weights_pass_gradcheck(self):
        """The function is linear in the weights, so a large eps is exact. Rows are fp32 and need a large eps."""
        bags = hct.EmbeddingBag.from_pretrained(ROWS, mode="sum")
        weights = torch.rand(6, 3, dtype=torch.float64, requires_grad=True)
        keys = batches(1)[0]
        run = lambda w: bags(keys, per_sample_weights=w).double()
        self.assertTrue(torch.autograd.gradcheck(run, (weights,), eps=0.125, atol=1e-4, nondet_tol=0.0))


class SecondMode(unittest.TestCase):
    """update="step" compared with torch.nn and the same optimizer."""

    def pair(self, kind=torch.optim.Adam, **words):
        ours, theirs = Model(), torch.nn.Module()
        theirs.bags = torch.nn.EmbeddingBag(40, 4, mode="sum", _weight=ROWS.clone())
        theirs.top = copy.deepcopy(ours.top)
        theirs.forward = lambda keys: theirs.top(torch.relu(theirs.bags(keys))).square().mean()
        rows = {} if kind is torch.optim.SGD else {"rows": "global"}
        return [
            (ours, [hct.optimizer(ours, kind, update="step", **rows, **words), kind(ours.top.parameters(), **words)]),
            (theirs, [kind(theirs.parameters(), **words)]),
        ]

    def same(self, pair, near=1e-6):
        (ours, _), (theirs, _) = pair
        self.assertLess(float((ours.bags.weight - theirs.bags.weight).abs().max()), near)
        self.assertLess(float((ours.top.weight - theirs.top.weight).abs().max()), near)

    def test_accumulated_gradients_are_one_update(self):
        pair = self.pair(lr=0.05)
        for model, steps in pair:
            for number, keys in enumerate(batches(9)):
                model.forward(keys).backward()
                if number % 3 == 2:
                    for step in steps:
                        step.step()
                        step.zero_grad()
        self.same(pair)
        self.assertEqual(pair[0][0].bags._engine.set().updates, 3)

    def test_accumulated_parts_are_the_whole_batch_bit_for_bit(self):
        keys = torch.cat(batches(3))
        for mode in ("sum", "mean", "max"):
            whole, parts = (hct.EmbeddingBag(40, 4, mode=mode, _weight=ROWS) for _ in range(2))
            for model, pieces in ((whole, [keys]), (parts, keys.split(6))):
                step = hct.optimizer(model, "adam", lr=0.1, update="step")
                for one in pieces:
                    model(one).square().sum().backward()
                step.step()
            self.assertTrue(torch.equal(whole.weight, parts.weight), mode)

    def test_accumulated_keys_are_looked_up_once(self):
        collect = hct.EmbeddingBagCollection
        tables = [
            hct.EmbeddingBagConfig(name="items", embedding_dim=4, feature_names=["a", "b"]),
            hct.EmbeddingBagConfig(name="users", embedding_dim=8, feature_names=["a"], pooling="mean"),
        ]

        def keys(seed):  # both tables use the keys of "a"
            draw = torch.Generator(DEVICE).manual_seed(seed)
            values = torch.randint(0, 50, (24,), generator=draw) * 1_234_567_890_123
            lengths = torch.tensor([3, 0, 5, 4, 2, 4, 1, 5], dtype=torch.int64)
            return hct.KeyedJaggedTensor(["b", "a"], values, lengths=lengths)

        def rows(looks_up, most=3):
            bags = collect(tables, device=DEVICE, seed=3)
            step = hct.optimizer(bags, "adam", lr=0.1, update="step")
            for first in range(0, 2 * most, most):
                for seed in range(first, first + most):
                    out = bags(keys(seed)).values()
                    out.backward(torch.randn(out.shape, generator=torch.Generator(DEVICE).manual_seed(seed)))
                of = bags._engine.set()
                with unittest.mock.patch.object(of, "forward", wraps=of.forward) as again:
                    if looks_up:
                        bags.rows("items")  # this access to rows invalidates the row numbers of look-ups
                    step.step()
                self.assertEqual(again.call_count, looks_up)
                step.zero_grad()
            return [one for name in bags.table_names() for one in bags.export(name)]

        for one, other in zip(rows(0), rows(1), strict=True):
            self.assertTrue(torch.equal(one, other))
        self.assertEqual(rows(0, 1)[0].shape, rows(1, 1)[0].shape)

    def test_rows_erased_between_parts_are_looked_up(self):
        def trained(erases):
            rows = hct.DynamicEmbedding(4, device=DEVICE, initial_value=0.0)
            step = hct.optimizer(rows, "sgd", lr=1.0, update="step")
            for number, keys in enumerate(torch.tensor([[1, 2, 3], [2, 5, 6], [7, 2, 1]])):
                rows(keys).sum().backward()
                if number == 1 and erases:
                    self.assertEqual(rows.erase(torch.tensor([1, 2, 3])), 3)
            step.step()
            return rows.export()

        for one, other in zip(trained(False), trained(True), strict=True):
            self.assertTrue(torch.equal(one, other))

    def test_clipping_takes_the_norm_of_all_gradients(self):
        pair = self.pair(torch.optim.SGD, lr=0.5)
        norms = []
        for model, steps in pair:
            for keys in batches(4):
                for step in steps:
                    step.zero_grad()
                (50 * model.forward(keys)).backward()
                norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
                for step in steps:
                    step.step()
        for one, other in zip(norms[:4], norms[4:]):
            self.assertLess(abs(one - other), 1e-4 * other)
        self.same(pair, 1e-5)

    def test_a_scaler_skips_steps_with_infinite_gradients(self):
        pair = self.pair(torch.optim.SGD, lr=0.1)
        for model, steps in pair:
            scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**10, growth_interval=2)
            for number, keys in enumerate(batches(6)):
                for step in steps:
                    step.zero_grad()
                loss = model.forward(keys) * (float("inf") if number == 2 else 1)
                scaler.scale(loss).backward()
                for step in steps:
                    scaler.step(step)
                scaler.update()
        self.same(pair)
        self.assertEqual(pair[0][0].bags._engine.set().updates, 5)

    def test_a_scaler_with_updates_in_backward(self):
        keys = batches(1)[0]
        for told in (False, True):
            ours = bag()
            step = hct.optimizer(ours, "sgd", lr=0.1)
            scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**10)
            if told:
                ours.scaler = scaler
            scaler.scale(ours(keys).sum()).backward()
            if not told:
                with self.assertRaisesRegex(UsageError, "multiplied loss"):
                    scaler.step(step)
                continue
            scaler.step(step)
            scaler.scale(ours(keys).sum() * float("inf")).backward()
            self.assertEqual(ours._engine.set().updates, 1)
            other = bag(optimizer="sgd", lr=0.1)
            other(keys).sum().backward()
            self.assertTrue(torch.equal(ours.weight, other.weight))

    def test_rows_are_read_while_a_gradient_waits(self):
        ours, other = bag(), bag()
        pair = [hct.optimizer(one, "adam", lr=0.1, update="step") for one in (ours, other)]
        for keys in batches(3):
            for model, step in zip((ours, other), pair):
                model(keys).square().sum().backward()
                if model is ours:
                    model.state_dict()
                    step.state_dict()
                step.step()
                step.zero_grad()
        self.assertTrue(torch.equal(ours.weight, other.weight))

    def test_schedulers_set_the_rate(self):
        for update in ("backward", "step"):
            ours, theirs = bag(), torch.nn.EmbeddingBag(40, 4, mode="sum", _weight=ROWS.clone())
            for model, step in (
                (ours, hct.optimizer(ours, "sgd", lr=0.4, update=update)),
                (theirs, torch.optim.SGD(theirs.parameters(), lr=0.4)),
            ):
                schedule = torch.optim.lr_scheduler.StepLR(step, 1, 0.5)
                for keys in batches(4):
                    step.zero_grad()
                    model(keys).square().mean().backward()
                    step.step()
                    schedule.step()
            self.assertLess(float((ours.weight - theirs.weight).abs().max()), 1e-6)

    def test_gradients_that_are_zeroed_are_gone(self):
        ours, other = bag(), bag()
        step = hct.optimizer(ours, "adam", lr=0.1, update="step")
        again = hct.optimizer(other, "adam", lr=0.1, update="step")
        first, second = batches(2)
        for zero in (step.zero_grad, ours.zero_grad, lambda: step.zero_grad(set_to_none=False)):
            ours(first).sum().backward()
            zero()
            ours(second).sum().backward()
            step.step()
            step.zero_grad()
            other(second).sum().backward()
            again.step()
            again.zero_grad()
            self.assertTrue(torch.equal(ours.weight, other.weight))

    def test_words_that_change_later_are_refused(self):
        bags = bag()
        step = hct.optimizer(bags, "adam", lr=0.1, betas=(0.9, 0.99))
        step.param_groups[0]["betas"] = (0.5, 0.5)
        with self.assertRaisesRegex(UsageError, "betas"):
            bags(batches(1)[0]).sum().backward()
        for words in ({"amsgrad": True}, {"weight_decay": 0.1}):
            with self.assertRaisesRegex(UsageError, next(iter(words))):
                hct.optimizer(bag(), "adam", lr=0.1, **words)


class Wrappers(unittest.TestCase):
    def test_ddp_of_one_process(self):
        with tempfile.TemporaryDirectory() as folder:
            place = "file://" + os.path.join(folder, "place")
            torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
            try:
                model, other = Model(optimizer="adam", lr=0.1), Model(optimizer="adam", lr=0.1)
                wrapped = torch.nn.parallel.DistributedDataParallel(model)
                for ours, theirs in zip(train(wrapped, model), train(other, other)):
                    self.assertTrue(torch.equal(ours, theirs))
            finally:
                torch.distributed.destroy_process_group()

    def test_autocast_leaves_rows_alone(self):
        model = bag(optimizer="sgd", lr=0.1)
        with torch.autocast(DEVICE, torch.bfloat16):
            out = model(batches(1)[0])
        self.assertEqual(out.dtype, torch.float32)
        out.sum().backward()


if __name__ == "__main__":
    unittest.main()
