"""DLPack tensors in host memory and in GPU memory: used in place or rejected."""

import ctypes as c
import importlib
import os
import unittest

import huge_ctr
import numpy as np
import support
from huge_ctr import _structs


class DlTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device_type", c.c_int32),
        ("device_id", c.c_int32),
        ("dims", c.c_int32),
        ("code", c.c_uint8),
        ("bits", c.c_uint8),
        ("lanes", c.c_uint16),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("offset", c.c_uint64),
        ("context", c.c_void_p),
        ("deleter", c.c_void_p),
    ]


new_capsule = c.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]


class Tensor:
    """A tensor with __dlpack__ only, like torch tensors before version 1 of DLPack."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OnGpu:
    """A tensor whose DLPack device is a GPU. Its memory is never read."""

    def __init__(self, shape, code=2, bits=32, device=(2, 0), strides=None):
        self.shape, self.device, self.streams = shape, device, []
        sizes = (c.c_int64 * len(shape))(*shape)
        steps = (c.c_int64 * len(shape))(*strides) if strides else None
        self.tensor = DlTensor(4096, *device, len(shape), code, bits, 1, sizes, steps, 0)

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return new_capsule(c.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return self.device


class Tensors(support.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = huge_ctr.train("config.json", run_dir="run", device="cpu")
        cls.scores = cls.model.predict("eval.csv")
        cls.arrays = cls.model.encode("eval.csv")
        labels = [[row["bought"] == "yes"] for row in cls.eval_rows]
        cls.batch = {**cls.arrays, "label": np.array(labels, np.float32)}

    @classmethod
    def tearDownClass(cls):
        cls.model.close()
        super().tearDownClass()

    def test_of_the_host_are_read_where_they_lie(self):
        keys, offsets = self.arrays["keys"]
        tensors = {"dense": Tensor(self.arrays["dense"]), "keys": (Tensor(keys), Tensor(offsets))}
        self.assertTrue(np.array_equal(self.model.predict(tensors), self.scores))
        wide = np.full((200, 5), 7, np.float32)
        wide[:, 1:3] = self.arrays["dense"]
        self.assertTrue(np.array_equal(self.model.predict({**tensors, "dense": Tensor(wide[:, 1:3])}), self.scores))

    def test_scores_go_where_the_caller_says(self):
        every_second = np.zeros((200, 2), np.float32)[:, 1]
        for out in (np.zeros(200, np.float32), np.zeros((200, 1), np.float32), every_second):
            self.assertIs(self.model.predict(self.arrays, out=out), out)
            self.assertTrue(np.array_equal(out.reshape(-1), self.scores))
        out = {"loss": np.zeros(200, np.float32)}
        self.model.predict(self.arrays, out=out)
        self.assertTrue(np.array_equal(out["loss"], self.scores))
        constant = np.zeros(200, np.float32)
        constant.flags.writeable = False
        for wrong, parts in (
            (np.zeros(200), ["out 'loss'", "64 bits"]),
            (np.zeros(199, np.float32), ["(199,)", "(200,) or (200, 1)"]),
            (np.zeros(200, np.int32), ["int32", "float32"]),
            (constant, ["out 'loss'"]),
            ([0.0] * 200, ["list", "DLPack"]),
            ({"los": out["loss"]}, ["'los'", "'loss'"]),
        ):
            with self.says(huge_ctr.UsageError, *parts):
                self.model.predict(self.arrays, out=wrong)
        with self.says(huge_ctr.UsageError, "dict of arrays"):
            self.model.predict("eval.csv", out=out)

    def test_of_a_gpu_are_refused_by_what_is_on_the_cpu(self):
        dense = OnGpu((200, 2))
        for device in ((2, 0), (13, 0)):
            with self.says(huge_ctr.UsageError, "'dense' is on GPU 0", "the model is on the CPU"):
                self.model.predict({**self.arrays, "dense": OnGpu((200, 2), device=device)})
        with huge_ctr.Trainer("config.json", device="cpu") as trainer:
            with self.says(huge_ctr.UsageError, "'dense' is on GPU 0", "the trainer is on the CPU"):
                trainer.step({**self.batch, "dense": dense})
            with self.says(huge_ctr.UsageError, "'dense' is on GPU 0"):
                trainer.evaluate({**self.batch, "dense": dense})
            self.assertEqual(trainer.step(self.batch), "reached")
        self.assertEqual(dense.streams, [1, 1], "CUDA's default stream waits for the tensor")
        with self.says(huge_ctr.UsageError, "output 'loss' is on GPU 1", "the model is on the CPU"):
            self.model.predict(self.arrays, out=OnGpu((200,), device=(2, 1)))

    def test_of_a_gpu_have_to_fit_as_they_are(self):
        for tensor, parts in (
            (OnGpu((200, 2), bits=64), ["input 'dense'", "64 bits"]),
            (OnGpu((200, 2), code=0), ["'dense' is on a GPU as int32", "float32"]),
            (OnGpu((200, 3)), ["(200, 3)", "(samples, 2)"]),
            (OnGpu((200, 2), strides=(1, 200)), ["'dense'", "not contiguous"]),
            (OnGpu((200, 2), device=(10, 0)), ["type 10", "CUDA"]),
        ):
            with self.says(huge_ctr.UsageError, *parts):
                self.model.predict({**self.arrays, "dense": tensor})
        keys, offsets = self.arrays["keys"]
        with self.says(huge_ctr.UsageError, "bags on a GPU", ".cpu()"):
            self.model.predict({**self.arrays, "keys": (OnGpu(keys.shape, 0, 64), offsets)})
        with self.says(huge_ctr.UsageError, "'keys' is on a GPU as float32", "integers"):
            self.model.predict({**self.arrays, "keys": OnGpu((200, 3))})
        with self.says(huge_ctr.UsageError, "a tensor is on a GPU", ".cpu()"):
            self.model.predict({"price": OnGpu((200,))})

    def test_strides_are_those_of_the_tensor(self):
        from huge_ctr._dlpack import Borrowed

        self.assertEqual(Borrowed(OnGpu((4, 2)), "x").strides, (2, 1))
        column = Borrowed(OnGpu((4,), strides=(3,)), "x").matrix()
        self.assertEqual((column.shape[1], column.strides[0], column.gpu), (1, 3, 0))
        self.assertEqual(_structs.DTYPE_NAMES[Borrowed(OnGpu((4,), 1, 64), "x").array.dtype], "uint64")

    def test_an_iterator_may_give_tuples(self):
        keys, offsets = self.arrays["keys"]

        def batches(end=200):
            for first in range(0, end, 50):
                ends = offsets[first * 3 : (first + 50) * 3 + 1]
                yield (
                    Tensor(self.arrays["dense"][first : first + 50]),
                    (keys[ends[0] : ends[-1]], ends - ends[0]),
                    Tensor(self.batch["label"][first : first + 50, 0]),
                )

        names = ["dense", "keys", "label"]
        with huge_ctr.Trainer("config.json", device="cpu") as trainer:
            trainer.fit(batches(), names=names)
            self.assertEqual((trainer.state.iteration, trainer.state.samples), (4, 200))
            with self.says(huge_ctr.UsageError, "tuple", "names="):
                trainer.fit(batches())
            with self.says(huge_ctr.UsageError, "3 parts", "names has 2"):
                trainer.fit(batches(), names=names[:2])


class OfTorch(support.InFolder):
    """Skipped if torch is not installed."""

    def setUp(self):
        self.torch = support.need("torch")

    def data(self):
        columns = support.columns_of(self.train_rows)
        draw = self.torch.Generator().manual_seed(1)
        prices = self.torch.tensor(columns["price"], requires_grad=True)
        return {**columns, "price": prices, "user": self.torch.randint(0, 40, (600,), generator=draw)}

    def test_tensors_are_columns(self):
        model = huge_ctr.train(support.shop_config(num_epochs=1), self.data(), device="cpu")
        plain = {**self.data(), "price": self.data()["price"].tolist(), "user": self.data()["user"].numpy()}
        self.assertTrue(np.array_equal(model.predict(self.data()), model.predict(plain)))

    def loader(self, config):
        model = huge_ctr.train(config, device="cpu", changes={"solver.num_epochs": 1})
        arrays = model.encode("train.csv")
        labels = self.torch.tensor([float(row["bought"] == "yes") for row in self.train_rows])
        parts = (self.torch.from_numpy(arrays["dense"]), self.torch.from_numpy(arrays["keys"]), labels)
        return self.torch.utils.data.DataLoader(self.torch.utils.data.TensorDataset(*parts), batch_size=64)

    def one_key_each(self):
        config = support.shop_config(eval_interval=0)
        config["layers"][0]["csv"]["slots"].pop()
        config["layers"][0]["sparse"][0].update(slot_num=2, nnz_per_slot=[1, 1])
        config["layers"][2]["leading_dim"] = 8
        return config

    def test_a_data_loader_gives_batches(self):
        config = self.one_key_each()
        with huge_ctr.Trainer(config, device="cpu") as trainer:
            trainer.fit(self.loader(config), names=("dense", "keys", "label"))
            self.assertEqual((trainer.state.iteration, trainer.state.samples), (10, 600))

    def test_on_a_gpu_tensors_stay_there(self):
        self.stay_there(lambda tensor: tensor)

    def test_on_a_gpu_arrays_of_cupy_stay_there(self):
        self.stay_there(support.need("cupy").from_dlpack)

    def test_on_a_gpu_arrays_of_jax_stay_there(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # otherwise JAX reserves most GPU memory
        jax = support.need("jax")
        jax.config.update("jax_enable_x64", True)
        self.stay_there(importlib.import_module("jax.dlpack").from_dlpack)

    def stay_there(self, converted):
        """Host tensors, and GPU arrays that `converted` makes from the same tensors, give equal losses and scores."""
        if not self.torch.cuda.is_available():
            self.skipTest("needs a GPU")
        config = self.one_key_each()
        loader = self.loader(config)
        batches = [dict(zip(("dense", "keys", "label"), batch)) for batch in loader]
        there = [{name: converted(one.cuda()) for name, one in batch.items()} for batch in batches]
        losses = []
        for given in (batches, there):
            with huge_ctr.Trainer(config, device="cuda") as trainer:
                trainer.fit(given)
                losses.append(trainer.state.loss)
                model = trainer.model()
        self.assertEqual(losses[0], losses[1])
        inputs = [{name: batch[name] for name in ("dense", "keys")} for batch in (batches[0], there[0])]
        out = self.torch.zeros(64, device="cuda")
        self.assertIs(model.predict(inputs[1], out=out), out)
        self.assertTrue(np.array_equal(out.cpu().numpy(), model.predict(inputs[0])))


if __name__ == "__main__":
    unittest.main()
