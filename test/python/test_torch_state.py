"""State of huge_ctr.torch: state_dict, pickle, copies, checkpoints, foreign files, and rows served by the store."""

import copy
import io
import json
import tempfile
import unittest
from pathlib import Path

import support

support.need("torch")
import huge_ctr.torch as hct  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

DEVICE = support.torch_device()
torch.set_num_threads(1)


class Model(torch.nn.Module):
    def __init__(self, policy=False, **words):
        super().__init__()
        torch.manual_seed(3)
        rows = {"num_embeddings": 12, "when_full": "evict_lfu"} if policy else {}
        self.bags = hct.EmbeddingBagCollection(
            [
                hct.EmbeddingBagConfig(name="grows", embedding_dim=4, feature_names=["x"], **rows),
                hct.EmbeddingBagConfig(name="fixed", embedding_dim=3, num_embeddings=20, feature_names=["x"]),
            ],
            optimizer="adam",
            lr=0.1,
            **words,
        )
        self.top = torch.nn.Linear(7, 1)

    def forward(self, keys):
        return self.top(torch.relu(self.bags(keys).values())).square().mean()


def steps(model, optimizers, first, last):
    for number in range(first, last):
        draw = torch.Generator(DEVICE).manual_seed(number)
        keys = hct.KeyedJaggedTensor(["x"], torch.randint(0, 20, (8,), generator=draw), lengths=torch.full((4,), 2))
        for one in optimizers:
            one.zero_grad()
        model(keys).backward()
        for one in optimizers:
            one.step()


def made(**words):
    model = Model(**words)
    return model, [torch.optim.Adam(model.top.parameters(), lr=0.01), hct.optimizer(model)]


def bytes_of(model):
    return {name: one.detach().cpu().numpy().tobytes() for name, one in model.state_dict().items()}


class State(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def whole(self, **words):
        model, optimizers = made(**words)
        steps(model, optimizers, 0, 6)
        return bytes_of(model)

    def test_names_are_those_of_torchrec(self):
        model, optimizers = made()
        steps(model, optimizers, 0, 1)
        names = ["bags.embedding_bags.grows.weight", "bags.embedding_bags.grows.keys"]
        self.assertEqual(
            list(model.state_dict()), names + ["bags.embedding_bags.fixed.weight", "top.weight", "top.bias"]
        )

    def test_training_goes_on_from_a_saved_state_bit_for_bit(self):
        for update in ("backward", "step"):
            model, optimizers = made(update=update)
            steps(model, optimizers, 0, 3)
            file = io.BytesIO()
            torch.save({"model": model.state_dict(), "optimizers": [one.state_dict() for one in optimizers]}, file)
            file.seek(0)
            saved = torch.load(file)
            model, optimizers = made(update=update)
            steps(model, optimizers, 7, 8)  # trains on other rows before loading
            model.load_state_dict(saved["model"])
            for one, state in zip(optimizers, saved["optimizers"]):
                one.load_state_dict(state)
            steps(model, optimizers, 3, 6)
            self.assertEqual(bytes_of(model), self.whole(update=update))

    def test_checkpoints_keep_policies_too(self):
        for policy in (False, True):
            model, optimizers = made(policy=policy)
            optimizers[1].param_groups[0]["lr"] = 0.2
            steps(model, optimizers, 0, 3)
            place = self.path / f"checkpoint{policy}"
            hct.save_checkpoint(place, model, optimizers)
            steps(model, optimizers, 3, 6)
            again, others = made(policy=policy)
            steps(again, others, 9, 10)
            hct.load_checkpoint(place, again, others)
            steps(again, others, 3, 6)
            self.assertEqual(bytes_of(again), bytes_of(model))

    def test_copies_and_pickles_go_on_alone(self):
        model, optimizers = made()
        steps(model, optimizers, 0, 3)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for again in (copy.deepcopy(model), torch.load(file, weights_only=False)):
            self.assertEqual(bytes_of(again), bytes_of(model))
            others = [torch.optim.SGD(again.top.parameters(), lr=0.0), hct.optimizer(again)]
            before = bytes_of(model)
            steps(again, others, 3, 4)
            self.assertNotEqual(bytes_of(again), before)
            self.assertEqual(bytes_of(model), before)

    def test_what_does_not_fit_is_named(self):
        model, _ = made()
        state = model.state_dict()
        state["bags.embedding_bags.fixed.weight"] = torch.zeros(19, 3)
        state["bags.embedding_bags.other.weight"] = torch.zeros(1, 3)
        del state["bags.embedding_bags.grows.weight"]
        with self.assertRaises(RuntimeError) as caught:
            model.load_state_dict(state)
        for part in ("(19, 3)", "other.weight", "grows.weight"):
            self.assertIn(part, str(caught.exception))

    def test_rows_of_torch_go_in_and_out(self):
        theirs = torch.nn.EmbeddingBag(9, 4, mode="sum")
        ours = hct.EmbeddingBag(9, 4, mode="sum")
        ours.load_state_dict(theirs.state_dict())
        self.assertTrue(torch.equal(ours.weight, theirs.weight))
        theirs.load_state_dict(ours.state_dict())
        back, keys = hct.to_torch(ours)
        self.assertEqual(keys.tolist(), list(range(9)))
        bags = torch.randint(0, 9, (4, 2))
        self.assertLess(float((back(bags) - ours(bags)).detach().abs().max()), 1e-6)
        grown = hct.Embedding(None, 4, optimizer="sgd", lr=0.1)
        grown(torch.tensor([70, -5])).sum().backward()
        back, keys = hct.to_torch(grown)
        self.assertEqual(keys.tolist(), [-5, 70])
        self.assertTrue(torch.equal(back.weight, grown.weight))

    def test_a_state_of_torchrec_is_loaded(self):
        try:
            import torchrec
        except ImportError:
            self.skipTest("no torchrec for this Python: pip install torchrec")
        tables = [torchrec.EmbeddingBagConfig(name="t", embedding_dim=4, num_embeddings=9, feature_names=["x"])]
        theirs = torchrec.EmbeddingBagCollection(tables=tables)
        ours = hct.EmbeddingBagCollection(tables)
        ours.load_state_dict(theirs.state_dict())
        theirs.load_state_dict(ours.state_dict())
        keys = torchrec.KeyedJaggedTensor(["x"], torch.arange(6), lengths=torch.tensor([2, 4]))
        self.assertLess(float((ours(keys).values() - theirs(keys).values()).detach().abs().max()), 1e-6)

    def test_files_of_dynamicemb_and_safetensors(self):
        ours = hct.DynamicEmbedding(3, name="t")
        ours.upsert(torch.tensor([2**40, -1]), torch.arange(6.0).view(2, 3))
        hct.save_dynamicemb(ours, "t", self.path / "dump")
        again = hct.DynamicEmbedding(3, name="t")
        self.assertEqual(hct.load_dynamicemb(again, "t", self.path / "dump"), 2)
        hct.save_safetensors(again, "t", self.path / "t.safetensors")
        keys, vectors = hct.read_safetensors(self.path / "t.safetensors")
        self.assertEqual((keys.tolist(), vectors.tolist()), ([-1, 2**40], [[3, 4, 5], [0, 1, 2]]))

    def test_the_store_serves_the_rows(self):
        model, optimizers = made()
        steps(model, optimizers, 0, 3)
        config = hct.save_for_store(model.bags, self.path / "store", name="ctr")
        self.assertEqual(json.loads(config.read_text())["models"][0]["name"], "ctr")
        support.program("huge_ctr", "store", "load", config)
        keys, vectors = model.bags.export("grows")
        said = support.program("huge_ctr", "store", "get", config, "--table", "grows", "--keys", int(keys[1]))
        found = np.array([float(one) for one in said.split()[-4:]])
        np.testing.assert_allclose(found, vectors[1].numpy(), rtol=1e-5)

    def test_modules_of_a_model_are_replaced_with_their_rows(self):
        theirs = torch.nn.Sequential(torch.nn.Embedding(9, 4, padding_idx=2), torch.nn.Linear(4, 2))
        keys = torch.arange(9)
        want = theirs(keys)
        ours = hct.replace(theirs, "adam", lr=0.1)
        self.assertIsInstance(ours[0], hct.Embedding)
        self.assertLess(float((ours(keys) - want).detach().abs().max()), 1e-6)
        ours(keys).sum().backward()
        self.assertEqual(float(ours[0].weight[2].abs().sum()), 0)
        self.assertIsInstance(hct.replace(torch.nn.EmbeddingBag(3, 2), "sgd"), hct.EmbeddingBag)

    def test_rows_survive_another_optimizer(self):
        model, optimizers = made()
        steps(model, optimizers, 0, 2)
        before = bytes_of(model)
        hct.optimizer(model, "sgd", lr=0.0)
        self.assertEqual(bytes_of(model), before)

    def test_a_module_on_meta_has_shapes_alone(self):
        bags = hct.EmbeddingBag(9, 4, device="meta")
        self.assertEqual((bags.weight.device.type, bags.weight.shape), ("meta", (9, 4)))


if __name__ == "__main__":
    unittest.main()
