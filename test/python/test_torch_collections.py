"""Table collections with keys per feature, tables passed to calls, and keys passed in advance."""

import tempfile
import unittest

import support

support.need("torch")
import huge_ctr.torch as hct  # noqa: E402
import torch  # noqa: E402
from huge_ctr import DataError, UsageError  # noqa: E402

DEVICE = support.torch_device()
torch.set_num_threads(1)


def kjt(names, draw, samples=6, keys=30, weighted=False):
    lengths = torch.randint(0, 4, (len(names) * samples,), generator=draw)
    count = int(lengths.sum())
    weights = torch.rand(count, generator=draw) if weighted else None
    values = torch.randint(0, keys, (count,), generator=draw)
    return hct.KeyedJaggedTensor.from_lengths_sync(names, values, lengths, weights)


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def configs(**words):
    pooling = hct.PoolingType
    return [
        hct.EmbeddingBagConfig(name="a", embedding_dim=4, num_embeddings=30, feature_names=["x", "y"], **words),
        hct.EmbeddingBagConfig(
            name="b", embedding_dim=3, num_embeddings=30, feature_names=["y"], pooling=pooling.MEAN, **words
        ),
    ]


def one_config():
    return hct.EmbeddingConfig(name="one", embedding_dim=4, feature_names=["x", "y"])


class Bags(unittest.TestCase):
    def test_vectors_and_updates_are_those_of_torch(self):
        bags = hct.EmbeddingBagCollection(configs(), optimizer="adagrad", lr=0.1)
        theirs = {
            name: torch.nn.EmbeddingBag(30, dim, mode=mode, include_last_offset=True, _weight=bags.weight_of(name))
            for name, dim, mode in (("a", 4, "sum"), ("b", 3, "mean"))
        }
        step = torch.optim.Adagrad([p for one in theirs.values() for p in one.parameters()], lr=0.1)
        draw = torch.Generator(DEVICE).manual_seed(1)
        for _ in range(10):
            keys = kjt(["y", "unused", "x"], draw)
            out = bags(keys)
            self.assertEqual(out.keys(), ["x", "y@a", "y@b"])
            self.assertEqual(out.length_per_key(), [4, 4, 3])
            parts = keys.to_dict()
            want = [theirs[t](parts[f].values(), parts[f].offsets().long()) for t, f in ("ax", "ay", "by")]
            self.assertLess(float((out.values() - torch.cat(want, 1)).detach().abs().max()), 1e-6)
            step.zero_grad()
            (out.values().square().sum() + 0).backward()
            torch.cat(want, 1).square().sum().backward()
            step.step()
        for name, one in theirs.items():
            self.assertLess(float((bags.embedding_bags[name].weight - one.weight).abs().max()), 1e-6)

    def test_many_tables_are_each_of_them_alone(self):
        """On a GPU the kernels of many tables are merged. Each table must give the results that it gives alone, bit for
        bit."""

        def table(i):
            return hct.EmbeddingBagConfig(name=f"t{i}", embedding_dim=1 + i % 9, feature_names=[f"f{i}"])

        names, some = [f"f{i}" for i in range(90)], (0, 8, 19, 20, 31, 40, 84, 85, 89)
        bags = hct.EmbeddingBagCollection([table(i) for i in range(90)], optimizer="adam", lr=0.1)
        alone = {i: hct.EmbeddingBagCollection([table(i)], optimizer="adam", lr=0.1) for i in some}
        draw = torch.Generator(DEVICE).manual_seed(4)
        for _ in range(3):
            keys = kjt(names, draw, samples=20, keys=40)
            out = bags(keys)
            dy = torch.randn(out.values().shape, generator=draw)
            out.values().backward(dy)
            parts = torch.split(dy, out.length_per_key(), 1)
            for i in some:
                vectors = alone[i](keys).values()
                self.assertTrue(torch.equal(vectors, out[f"f{i}"]), i)
                vectors.backward(parts[i])
        for i in some:
            for one, other in zip(bags.export(f"t{i}"), alone[i].export(f"t{i}")):
                self.assertTrue(torch.equal(one, other), i)

    def test_batches_of_changing_layouts_follow_each_other(self):
        """The structs of a call are reused by the next call, and no value of an earlier batch may remain in them."""
        bags, want = (hct.EmbeddingCollection([one_config()], optimizer="sgd", lr=0.1) for _ in range(2))
        draw = torch.Generator(DEVICE).manual_seed(5)
        for samples, wide in ((3, True), (7, False), (3, True), (3, False), (1, True), (7, True)):
            keys = kjt(["x", "y"], draw, samples)
            if not wide:
                offsets, lengths = keys.offsets().int(), keys.lengths().int()
                keys = hct.KeyedJaggedTensor(["x", "y"], keys.values().int(), lengths=lengths, offsets=offsets)
            fresh = hct.EmbeddingCollection([one_config()], optimizer="sgd", lr=0.1)
            fresh.set_rows("one", *want.export("one"))
            outs = [model(keys) for model in (bags, fresh)]
            for name in ("x", "y"):
                self.assertTrue(torch.equal(outs[0][name].values(), outs[1][name].values()))
            for out in outs:
                sum(one.values().square().sum() for one in out.values()).backward()
            want.set_rows("one", *fresh.export("one"))
        self.assertTrue(torch.equal(bags.weight_of("one"), want.weight_of("one")))

    def test_weights_of_keys(self):
        bags = hct.EmbeddingBagCollection(configs()[:1], is_weighted=True, optimizer="sgd", lr=0.1)
        keys = kjt(["x", "y"], torch.Generator(DEVICE).manual_seed(2), weighted=True)
        weight = bags.weight_of("a")
        for name in ("x", "y"):
            one = keys[name]
            want = torch.nn.functional.embedding_bag(
                one.values(),
                weight,
                one.offsets(),
                mode="sum",
                per_sample_weights=one.weights(),
                include_last_offset=True,
            )
            self.assertLess(float((bags(keys)[name] - want).abs().max()), 1e-6)

    def test_weights_have_gradients(self):
        bags = hct.EmbeddingBagCollection(configs(), is_weighted=True, optimizer="sgd", lr=0.0)
        keys = kjt(["y", "unused", "x"], torch.Generator(DEVICE).manual_seed(8), weighted=True)
        weights = keys.weights().requires_grad_()
        scales = torch.rand(11)
        (bags(keys).values() * scales).sum().backward()
        parts, at = keys.to_dict(), dict(zip(keys.keys(), keys.offset_per_key()))
        a, b = bags.weight_of("a"), bags.weight_of("b")
        want = torch.zeros_like(weights)
        want[at["x"] :] = a[parts["x"].values()] @ scales[:4]
        y, of_y = parts["y"], keys["y"].weights().detach().requires_grad_()
        bag = torch.repeat_interleave(torch.arange(6), y.lengths())
        total = torch.zeros(6).index_add(0, bag, of_y)[bag]
        ((a[y.values()] @ scales[4:8]) * of_y + (b[y.values()] @ scales[8:]) * of_y / total).sum().backward()
        want[: at["unused"]] = of_y.grad
        self.assertLess(float((weights.grad - want).abs().max()), 1e-5)

    def test_torchrecs_objects_are_taken(self):
        try:
            from torchrec import EmbeddingBagConfig, KeyedJaggedTensor, PoolingType
        except ImportError:
            self.skipTest("no torchrec for this Python: pip install torchrec")
        tables = [
            EmbeddingBagConfig(
                name="a", embedding_dim=4, num_embeddings=30, feature_names=["x"], pooling=PoolingType.MEAN
            )
        ]
        ours = hct.EmbeddingBagCollection(tables, optimizer="sgd", lr=0.1)
        keys = kjt(["x"], torch.Generator(DEVICE).manual_seed(3))
        theirs = KeyedJaggedTensor(["x"], keys.values(), lengths=keys.lengths())
        self.assertTrue(torch.equal(ours(keys).values(), ours(theirs).values()))
        self.assertLessEqual(float(ours.weight_of("a").abs().max()), 30**-0.5)

    def test_tables_grow_evict_and_admit(self):
        tables = [
            hct.EmbeddingBagConfig(name="grows", embedding_dim=2, feature_names=["x"]),
            hct.EmbeddingBagConfig(
                name="evicts", embedding_dim=2, num_embeddings=16, when_full="evict_lru", feature_names=["x"]
            ),
            hct.EmbeddingBagConfig(name="admits", embedding_dim=2, min_count=3, feature_names=["x"]),
        ]
        bags = hct.EmbeddingBagCollection(tables, optimizer="sgd", lr=0.1)
        for step in range(10):
            values = torch.tensor([2**62 + step, -step, 5])
            bags(hct.KeyedJaggedTensor(["x"], values, lengths=torch.tensor([2, 1]))).values().sum().backward()
        self.assertEqual(bags.rows("grows"), 21)
        self.assertLessEqual(bags.rows("evicts"), 16)
        self.assertGreater(bags.figures("evicts")["rows_evicted"], 0)
        self.assertEqual(bags.export("admits")[0].tolist(), [5])

    def test_rows_beyond_memory_give_the_same_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            words = {
                "disk": folder,
                "disk_bytes": 1 << 28,
                "device_bytes": 1 << 20 if DEVICE == "cpu" else 64 << 20,
                "host_bytes": 1 << 21 if DEVICE == "cpu" else 1 << 24,
                "most_keys": 2048,
            }
            found = []
            for tiers in ({}, words):
                tables = [hct.EmbeddingBagConfig(name="t", embedding_dim=32, feature_names=["x"])]
                bags = hct.EmbeddingBagCollection(tables, optimizer="adam", lr=0.1, **tiers)
                for step in range(12):
                    keys = torch.arange(2000) + 1500 * (step % 6)
                    kjt = hct.KeyedJaggedTensor(["x"], keys, lengths=torch.full((1000,), 2))
                    bags(kjt).values().square().sum().backward()
                found.append((bags.export("t"), bags.figures("t")))
            if DEVICE == "cpu":  # on a GPU, even the smallest budget holds all rows
                self.assertGreater(found[1][1]["rows_on_disk"], 0)
            for ours, theirs in zip(found[0][0], found[1][0]):
                self.assertTrue(torch.equal(ours, theirs))

    def test_what_does_not_fit_is_named(self):
        bags = hct.EmbeddingBagCollection(configs(), optimizer="sgd", lr=0.1)
        draw = torch.Generator(DEVICE).manual_seed(4)
        with self.assertRaisesRegex(UsageError, "feature 'y'"):
            bags(kjt(["x"], draw))
        with self.assertRaisesRegex(DataError, "'a/x' has key 30" if DEVICE == "cpu" else "30"):
            for _ in range(2):  # a GPU reports the key when the next batch begins
                bags(hct.KeyedJaggedTensor(["x", "y"], torch.tensor([30, 1]), lengths=torch.tensor([1, 1])))
                synchronize()
        bags = hct.EmbeddingBagCollection(configs(), optimizer="sgd", lr=0.1)
        with self.assertRaisesRegex(UsageError, "float32"):
            bags(hct.KeyedJaggedTensor(["x", "y"], torch.rand(2), lengths=torch.tensor([1, 1])))
        if DEVICE == "cpu":  # the host does not read offsets of one feature from a GPU
            with self.assertRaisesRegex(UsageError, "from 1 to 2"):
                hct.EmbeddingBag(5, 2, include_last_offset=True, optimizer="sgd")(torch.arange(2), torch.tensor([1, 2]))
        with self.assertRaisesRegex(UsageError, "from 0 to 3, expected 0 to 2"):
            bags(hct.KeyedJaggedTensor(["x", "y"], torch.arange(2), lengths=torch.tensor([1, 2])))
        with self.assertRaisesRegex(ValueError, "Duplicate"):
            hct.EmbeddingBagCollection(configs()[:1] * 2)
        with self.assertRaisesRegex(UsageError, "most_rows"):
            hct.EmbeddingBagCollection(configs(), most_rows=4)
        with self.assertRaisesRegex(UsageError, "'colour'"):
            hct.EmbeddingBagCollection(configs(), colour=4)
        with self.assertRaisesRegex(UsageError, "no optimizer 'lion'"):
            hct.EmbeddingBagCollection(configs(), optimizer="lion")

    def test_empty_batches(self):
        bags = hct.EmbeddingBagCollection(configs(), optimizer="adam", lr=0.1)
        none = hct.KeyedJaggedTensor(["x", "y"], torch.empty(0, dtype=torch.int64), lengths=torch.zeros(6).int())
        out = bags(none).values()
        self.assertEqual(float(out.detach().abs().sum()), 0)
        out.sum().backward()
        without_samples = hct.KeyedJaggedTensor(
            ["x", "y"], torch.empty(0, dtype=torch.int64), lengths=torch.empty(0, dtype=torch.int64), stride=0
        )
        self.assertEqual(bags(without_samples).values().shape, (0, 11))


class Varying(unittest.TestCase):
    """Compares features that have different numbers of samples with batches in which all features have all samples."""

    def pair(self):
        """Returns two equal batches: distinct samples with inverse indices, and all samples written out."""
        draw = torch.Generator(DEVICE).manual_seed(9)
        names, strides = ["y", "unused", "x"], [2, 5, 3]
        lengths = [torch.randint(0, 4, (stride,), generator=draw) for stride in strides]
        values = [torch.randint(0, 30, (int(one.sum()),), generator=draw) for one in lengths]
        inverse = torch.stack([torch.randint(0, stride, (6,), generator=draw) for stride in strides])
        few = hct.KeyedJaggedTensor(
            names,
            torch.cat(values),
            lengths=torch.cat(lengths),
            stride_per_key_per_rank=[[stride] for stride in strides],
            inverse_indices=(names, inverse),
        )
        lists = [torch.split(one, of.tolist()) for one, of in zip(values, lengths)]
        chosen = [lists[f][i] for f in range(3) for i in inverse[f].tolist()]
        return few, hct.KeyedJaggedTensor(names, torch.cat(chosen), lengths=torch.tensor([len(one) for one in chosen]))

    def test_pooled_vectors_and_updates_are_those_of_all_samples(self):
        few, every = self.pair()
        ours, theirs = (hct.EmbeddingBagCollection(configs(), optimizer="adagrad", lr=0.1) for _ in range(2))
        for _ in range(3):
            outs = [bags(keys).values() for bags, keys in ((ours, few), (theirs, every))]
            self.assertTrue(torch.equal(*outs))
            for out in outs:
                out.square().sum().backward()
        for name in ("a", "b"):
            self.assertLess(float((ours.weight_of(name) - theirs.weight_of(name)).abs().max()), 1e-6)
        with self.assertRaisesRegex(UsageError, "inverse_indices"):
            few._inverse = None
            ours(few)

    def test_vectors_of_keys_have_the_lengths_of_their_feature(self):
        few, _ = self.pair()
        one = hct.EmbeddingCollection(
            [hct.EmbeddingConfig(name="a", embedding_dim=4, num_embeddings=30, feature_names=["x", "y"])]
        )
        out = one(few)
        for name in ("x", "y"):
            self.assertTrue(torch.equal(out[name].values(), one.weight_of("a")[few[name].values()]))
            self.assertTrue(torch.equal(out[name].lengths(), few[name].lengths()))


class Sequences(unittest.TestCase):
    def test_a_vector_of_each_key(self):
        tables = [
            hct.EmbeddingConfig(name="a", embedding_dim=4, num_embeddings=30, feature_names=["x", "y"]),
            hct.EmbeddingConfig(name="b", embedding_dim=4, num_embeddings=30, feature_names=["y"]),
        ]
        for names in (["x", "y"], ["y", "z", "x"]):
            one = hct.EmbeddingCollection(tables, need_indices=True, optimizer="sgd", lr=0.5)
            keys = kjt(names, torch.Generator(DEVICE).manual_seed(5))
            before = {name: one.weight_of(name) for name in ("a", "b")}
            out = one(keys)
            self.assertEqual(list(out), ["x", "y@a", "y@b"])
            for name, table, feature in (("x", "a", "x"), ("y@a", "a", "y"), ("y@b", "b", "y")):
                self.assertTrue(torch.equal(out[name].values(), before[table][keys[feature].values()]))
                self.assertTrue(torch.equal(out[name].lengths(), keys[feature].lengths()))
                self.assertTrue(torch.equal(out[name].weights(), keys[feature].values()))
            out["y@b"].values().sum().backward()
            counts = torch.bincount(keys["y"].values(), minlength=30).unsqueeze(1)
            self.assertLess(float((before["b"] - 0.5 * counts - one.weight_of("b")).abs().max()), 1e-6)
            self.assertTrue(torch.equal(one.weight_of("a"), before["a"]))


class Lists(unittest.TestCase):
    def test_they_are_those_of_torchrec(self):
        try:
            import torchrec.sparse.jagged_tensor as theirs
        except ImportError:
            self.skipTest("no torchrec for this Python: pip install torchrec")
        draw = torch.Generator(DEVICE).manual_seed(6)
        keys = kjt(["x", "y", "z"], draw, weighted=True)
        arguments = (["x", "y", "z"], keys.values(), keys.weights(), keys.lengths())
        pair = [hct.KeyedJaggedTensor(*arguments), theirs.KeyedJaggedTensor(*arguments)]
        ways = [
            lambda k: [k],
            lambda k: [k.permute([2, 0])],
            lambda k: k.split([1, 2]),
            lambda k: [type(k).concat(k.split([2, 1]))],
            lambda k: [type(k).from_jt_dict(k.to_dict())],
        ]
        for way in ways:
            for ours, other in zip(*(way(one) for one in pair)):
                self.assertEqual(ours.keys(), other.keys())
                self.assertEqual(ours.stride(), other.stride())
                self.assertEqual(ours.length_per_key(), other.length_per_key())
                self.assertEqual(ours.offset_per_key(), other.offset_per_key())
                for name in ("values", "weights", "lengths", "offsets"):
                    self.assertTrue(torch.equal(getattr(ours, name)(), getattr(other, name)()), name)
        one, other = (k["y"] for k in pair)
        self.assertTrue(torch.equal(one.to_padded_dense(3, 7), other.to_padded_dense(3, 7)))
        self.assertEqual([x.tolist() for x in one.to_dense()], [x.tolist() for x in other.to_dense()])


class Calls(unittest.TestCase):
    def test_rows_are_written_read_and_erased(self):
        table = hct.DynamicEmbedding(3, optimizer="sgd", lr=0.5)
        keys = torch.tensor([2**63 - 1, -(2**63), 0])
        table.upsert(keys, torch.arange(9.0).view(3, 3))
        self.assertEqual(table.lookup(torch.tensor([[0, 5], [-(2**63), 0]])).shape, (2, 2, 3))
        self.assertEqual(table.lookup(torch.tensor([0, 5])).tolist(), [[6, 7, 8], [0, 0, 0]])
        self.assertEqual(table.size(), 3)
        found, vectors, gone = table.deltas()
        self.assertEqual((found.tolist(), gone.tolist()), (sorted(keys.tolist()), []))
        table(torch.tensor([5, 0])).sum().backward()
        self.assertEqual(table.erase(torch.tensor([2**63 - 1, 77])), 1)
        found, vectors, gone = table.deltas()
        self.assertEqual((found.tolist(), gone.tolist()), ([0, 5], [77, 2**63 - 1]))
        self.assertEqual(vectors[0].tolist(), [5.5, 6.5, 7.5])
        self.assertEqual(table.export()[0].tolist(), [-(2**63), 0, 5])
        table.upsert(torch.tensor([9]))
        self.assertEqual(table.size(), 4)


class Early(unittest.TestCase):
    def run_both(self, early, update):
        bags = hct.EmbeddingBagCollection(configs(), optimizer="adam", lr=0.1, update=update)
        step = hct.optimizer(bags)
        draw = torch.Generator(DEVICE).manual_seed(7)
        data = [kjt(["x", "y"], draw) for _ in range(6)]
        loader = hct.Prefetching(data, bags, lambda batch: batch) if early else data
        taken = []
        for batch in loader:
            out = bags(batch).values()
            taken.append(len(bags._engine._early))
            out.square().sum().backward()
            step.step()
            step.zero_grad()
        return bags.state_dict(), taken

    def test_a_batch_given_early_is_the_same(self):
        for update in ("backward", "step"):
            (ours, taken), (theirs, none) = (self.run_both(early, update) for early in (True, False))
            self.assertEqual((taken, none), ([1, 1, 1, 1, 1, 0], [0] * 6))
            for name, one in ours.items():
                self.assertTrue(torch.equal(one, theirs[name]), name)

    def test_another_batch_than_the_one_given_early(self):
        bags = hct.EmbeddingBag(30, 2, mode="sum", optimizer="sgd", lr=0.1)
        first, second, third = (torch.full((2, 2), i) for i in range(3))
        bags.prefetch(first)
        bags(second).sum().backward()
        bags(first).sum().backward()
        bags.prefetch(third)
        self.assertEqual(bags.rows("weight"), 30)
        bags(third).sum().backward()
        self.assertEqual(bags._engine.set().updates, 3)


if __name__ == "__main__":
    unittest.main()
