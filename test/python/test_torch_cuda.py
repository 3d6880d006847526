"""huge_ctr.torch on a GPU: the other PyTorch tests, and what only a GPU has: streams, CUDA graphs, allocators."""

import gc
import os
import subprocess
import sys
import unittest
from pathlib import Path

import support

support.need("torch")
import huge_ctr.torch as hct  # noqa: E402
import torch  # noqa: E402
from huge_ctr import HugeCtrError  # noqa: E402

WHY_NOT = None if torch.cuda.is_available() else "PyTorch finds no GPU"
NAMES = [f"f{i}" for i in range(5)]


def collection(device="cuda", **words):
    """Tables that grow and tables of a fixed size, of several dims, with sum and mean pooling."""
    mean = hct.PoolingType.MEAN
    tables = [
        hct.EmbeddingBagConfig(name="a", embedding_dim=8, feature_names=NAMES[:2]),
        hct.EmbeddingBagConfig(name="b", embedding_dim=5, feature_names=NAMES[2:3], pooling=mean),
        hct.EmbeddingBagConfig(name="c", embedding_dim=16, num_embeddings=4000, feature_names=NAMES[3:]),
    ]
    return hct.EmbeddingBagCollection(tables, device=device, **{"optimizer": "adam", "lr": 0.05, **words})


def batch(seed, device="cuda", samples=32, hotness=4, most=4000):
    """Bags of equal length, whose key counts the host knows."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.randint(0, most, (len(NAMES) * samples * hotness,), generator=draw)
    lengths = torch.full((len(NAMES) * samples,), hotness)
    return hct.KeyedJaggedTensor(NAMES, values, lengths=lengths).to(device)


def gradient(seed, device="cuda", samples=32):
    draw = torch.Generator().manual_seed(1000 + seed)
    return (torch.randint(-8, 9, (samples, 53), generator=draw) / 16).to(device)


def train(bags, steps, device="cuda", **of_batch):
    for seed in steps:
        bags(batch(seed, device, **of_batch)).values().backward(gradient(seed, device))


def rows_of(bags, states=True):
    return {name: bags.export(name, states=states) for name in bags.table_names()}


class OnAGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if WHY_NOT:
            raise unittest.SkipTest(WHY_NOT)

    def equal(self, ours, theirs):
        """Compares rows and states bit for bit."""
        for table in ours:
            one, other = ours[table], theirs[table]
            for a, b in zip([*one[:2], *one[2]], [*other[:2], *other[2]]):
                self.assertTrue(torch.equal(a, b), table)


class OtherTests(OnAGpu):
    """Runs the tests of the other files in a process whose default device is the GPU."""

    def run_file(self, name):
        done = subprocess.run(
            [sys.executable, "-m", "unittest", name],
            cwd=Path(__file__).parent,
            env={**os.environ, "HCTR_TORCH_DEVICE": "cuda"},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            self.fail(done.stderr[-6000:])
        print(name, done.stderr.strip().splitlines()[-1], flush=True)

    def test_autograd(self):
        self.run_file("test_torch_autograd")

    def test_collections(self):
        self.run_file("test_torch_collections")

    def test_state(self):
        self.run_file("test_torch_state")

    def test_steps(self):
        self.run_file("test_torch_steps")


class Numbers(OnAGpu):
    def test_steps_on_a_gpu_are_those_of_a_cpu(self):
        """Gradients are multiples of 1/16, so their sums are exact on both devices."""
        for optimizer in ("sgd", "adagrad", "adam", "rowwise_adagrad"):
            found = []
            for device in ("cpu", "cuda"):
                bags = collection(device, optimizer=optimizer)
                train(bags, range(20), device)
                found.append(rows_of(bags))
            for table in found[0]:
                for a, b in zip(found[0][table][:2], found[1][table][:2]):
                    with self.subTest(optimizer=optimizer, table=table):
                        self.assertLess(float((a - b).abs().max()), 1e-5)

    def test_two_runs_give_equal_bytes(self):
        found = []
        for _ in range(2):
            bags = collection()
            train(bags, range(10))
            found.append(rows_of(bags))
        self.equal(*found)

    def test_keys_of_all_types_and_strides_are_taken(self):
        bags, want = collection(), collection()
        whole = batch(1)
        wide = torch.stack([whole.values(), whole.values()], 1)
        for values, offsets in (
            (wide[:, 0], whole.offsets()),
            (whole.values().int(), whole.offsets().int()),
            (whole.values().to(torch.uint64), whole.offsets()),
        ):
            keys = hct.KeyedJaggedTensor(NAMES, values, lengths=whole.lengths(), offsets=offsets)
            out = bags(keys).values()
            self.assertTrue(torch.equal(out, want(whole).values()))
            out.backward(gradient(1))
            want(whole).values().backward(gradient(1).t().contiguous().t())  # the gradient has another memory layout
        self.equal(rows_of(bags), rows_of(want))


class Streams(OnAGpu):
    def test_every_stream_may_call(self):
        """Steps on changing streams, each after the preceding step, give the results of steps on one stream."""
        bags, want = collection(), collection()
        train(want, range(12))
        streams = [torch.cuda.Stream() for _ in range(3)]
        for seed in range(12):
            stream = streams[seed % 3]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                torch.cuda._sleep(2_000_000)  # delays the keys on this stream
                train(bags, [seed])
        torch.cuda.synchronize()
        self.equal(rows_of(bags), rows_of(want))

    def test_work_is_queued_behind_that_of_the_stream(self):
        bags, want = collection(), collection()
        late, keys = batch(0), batch(3)
        train(bags, range(2)), train(want, range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(20_000_000)
        late.values().copy_(keys.values())  # runs after the sleep
        bags(late).values().backward(gradient(3))
        late.values().zero_()
        want(keys).values().backward(gradient(3))
        self.equal(rows_of(bags), rows_of(want))

    def test_the_host_does_not_wait_in_a_step(self):
        """A step returns while the GPU is still busy with earlier work."""
        bags = collection()
        keys, dy = batch(0), gradient(0)
        for _ in range(8):
            bags(keys).values().backward(dy)
        torch.cuda.synchronize()
        busy = torch.cuda.Event()
        torch.cuda._sleep(2_000_000_000)  # about a second
        busy.record()
        for _ in range(2):
            bags(keys).values().backward(dy)
        self.assertFalse(busy.query())
        torch.cuda.synchronize()

    def test_backward_runs_on_the_stream_and_device_of_forward(self):
        bags, want = collection(), collection()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            out = bags(batch(0)).values()
        out.backward(gradient(0))  # runs in an autograd thread, while another stream is current
        self.assertEqual(bags._engine._stream, stream.cuda_stream)
        train(want, [0])
        self.equal(rows_of(bags), rows_of(want))

    def test_prefetched_batches_are_the_same(self):
        """The look-up of the next batch runs concurrently with a backward pass, which begins late."""
        for update in ("backward", "step"):
            bags, want = collection(update=update), collection(update=update)
            data = [(batch(seed, samples=32 + seed), gradient(seed, samples=32 + seed)) for seed in range(40)]
            for model, loader in ((bags, hct.Prefetching(data, bags, lambda one: one[0])), (want, data)):
                step = hct.optimizer(model)
                for keys, dy in loader:
                    step.zero_grad()
                    out = model(keys).values()
                    torch.cuda._sleep(500_000)
                    out.backward(dy)
                    step.step()
            self.equal(rows_of(bags), rows_of(want))


class Graphs(OnAGpu):
    def record(self, bags, keys, dy, warm=(0, 1, 2)):
        """Records a step on these tensors as a CUDA graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            train(bags, warm)
        torch.cuda.current_stream().wait_stream(side)
        bags.anchor.grad = None
        most = [int(count) for count in keys.length_per_key()]
        bags.reserve(32, most)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = bags(keys).values()
            out.backward(dy)
        return graph, out, most

    def test_a_recorded_step_is_a_called_one_while_tables_grow(self):
        for optimizer in ("sgd", "adam"):
            bags, want = collection(optimizer=optimizer), collection(optimizer=optimizer)
            keys, dy = batch(3), gradient(3)
            graph, out, most = self.record(bags, keys, dy)
            train(want, range(3))
            for seed in range(3, 60):
                new = batch(seed, most=4000 if seed % 2 else 200_000 * seed) if seed > 3 else batch(3)
                values = new.values().clone()
                values[3 * 96 :] %= 4000  # the keys of the table that is indexed by row number
                keys.values().copy_(values)
                dy.copy_(gradient(seed))
                bags.reserve(32, most)
                graph.replay()
                called = want(hct.KeyedJaggedTensor(NAMES, values, lengths=keys.lengths())).values()
                self.assertTrue(torch.equal(out, called), seed)
                called.backward(gradient(seed))
            self.assertGreater(bags.rows("a"), 4000)
            self.equal(rows_of(bags), rows_of(want))
            self.assertEqual(bags._engine.set().updates, 60)

    def test_steps_may_be_called_between_replays(self):
        bags, want = collection(), collection()
        keys, dy = batch(3), gradient(3)
        graph, _, most = self.record(bags, keys, dy)
        train(want, range(3))
        for seed in range(3, 20):
            if seed % 3:
                keys.values().copy_(batch(seed).values())
                dy.copy_(gradient(seed))
                bags.reserve(32, most)
                graph.replay()
            else:
                train(bags, [seed], samples=32)
            train(want, [seed])
        self.equal(rows_of(bags), rows_of(want))

    def test_a_whole_model_is_recorded(self):
        def made():
            torch.manual_seed(1)
            top = torch.nn.Linear(53, 1).cuda()
            return collection(optimizer="adagrad"), top, torch.optim.SGD(top.parameters(), lr=0.1)

        def step(model, keys):
            bags, top, dense = model
            dense.zero_grad()
            top(torch.relu(bags(keys).values())).square().mean().backward()
            dense.step()

        models = [made(), made()]
        keys, stream = batch(0), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for model in models:
                for _ in range(3):
                    step(model, keys)
        torch.cuda.current_stream().wait_stream(stream)
        graph, most = torch.cuda.CUDAGraph(), keys.length_per_key()
        models[0][0].reserve(32, most)
        with torch.cuda.graph(graph):
            step(models[0], keys)
        for seed in range(10):
            new = batch(seed)
            keys.values().copy_(new.values())
            models[0][0].reserve(32, most)
            graph.replay()
            step(models[1], new)
        self.assertLess(float((models[0][1].weight - models[1][1].weight).abs().max()), 1e-5)
        for table in ("a", "b", "c"):
            pair = [model[0].export(table)[1] for model in models]
            self.assertLess(float((pair[0] - pair[1]).abs().max()), 1e-5)


class Scaling(OnAGpu):
    def test_a_scaler_skips_without_waiting(self):
        bags, want = collection(), collection()
        bags.scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
        step = hct.optimizer(bags)
        for seed in range(6):
            bad = seed in (2, 4)
            scaled = bags.scaler.scale((bags(batch(seed)).values() * gradient(seed)).sum())
            (scaled * (float("inf") if bad else 1)).backward()
            bags.scaler.step(step)
            bags.scaler.update()
            step.zero_grad()
            if not bad:
                train(want, [seed])
            else:
                want(batch(seed))  # so that `want` also gets the rows of this batch
        self.assertEqual(bags._engine.set().updates, 4)
        self.equal(rows_of(bags), rows_of(want))

    def test_the_rate_may_be_a_tensor_of_the_gpu(self):
        bags, want = collection(optimizer="sgd"), collection(optimizer="sgd")
        rate = torch.full((1,), 0.05, device="cuda")
        bags.lr = rate
        train(bags, range(3)), train(want, range(3))
        rate.fill_(0.5)
        want.lr = 0.5
        train(bags, range(3, 6)), train(want, range(3, 6))
        self.equal(rows_of(bags), rows_of(want))


class Memory(OnAGpu):
    def test_memory_comes_from_pytorchs_allocator(self):
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        tables = [hct.EmbeddingBagConfig(name="t", embedding_dim=64, num_embeddings=100_000, feature_names=["x"])]
        bags = hct.EmbeddingBagCollection(tables, device="cuda", optimizer="sgd", lr=0.1)
        keys = hct.KeyedJaggedTensor(["x"], torch.arange(50_000).cuda(), lengths=torch.full((500,), 100).cuda())
        bags(keys).values().sum().backward()
        del keys
        self.assertGreater(torch.cuda.memory_allocated() - before, 100_000 * 64 * 4)
        del bags
        gc.collect()  # frees modules, which form reference cycles with their hooks
        torch.cuda.synchronize()
        self.assertLess(torch.cuda.memory_allocated() - before, 1 << 20)

    def test_too_little_memory_is_an_error(self):
        torch.cuda.set_per_process_memory_fraction(0.02)
        try:
            tables = [hct.EmbeddingBagConfig(name="huge", embedding_dim=128, num_embeddings=10**8, feature_names=["x"])]
            bags = hct.EmbeddingBagCollection(tables, device="cuda", optimizer="adam", lr=0.1)
            with self.assertRaisesRegex(HugeCtrError, "huge|out of memory"):
                bags.rows("huge")
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        bags = collection()
        train(bags, range(2))  # the process can continue


if __name__ == "__main__":
    unittest.main()
