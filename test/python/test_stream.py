"""huge_ctr.stream: deltas from a Python trainer to a source and to a store, through librdkafka's mock cluster."""

import subprocess
import time
import unittest

import huge_ctr
import huge_ctr.store as store
import huge_ctr.stream as stream
import numpy as np
import support

CLUSTER = support.BIN.resolve() / "kafka_mock_cluster"


class Kafka:
    """librdkafka's mock cluster in a process of its own."""

    def __init__(self, *topics):
        self.process = subprocess.Popen(
            [CLUSTER, "1", *topics], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.brokers = self.process.stdout.readline().strip()

    def command(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "ok", text

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def rows_of(iteration, keys):
    return np.array([[key + iteration / 8, -key] for key in keys], np.float32)


@unittest.skipUnless(CLUSTER.exists(), f"no {CLUSTER.name}: librdkafka (librdkafka-dev) was not found by the build")
class Streams(support.InFolder):
    def setUp(self):
        super().setUp()
        self.kafka = Kafka("t:3")
        self.addCleanup(self.kafka.close)

    def producer(self, **options):
        return self.enterContext_(stream.DeltaProducer(self.kafka.brokers, "t", message_bytes=4096, **options))

    def enterContext_(self, context):  # Python 3.9 has no enterContext()
        self.addCleanup(context.__exit__, None, None, None)
        return context.__enter__()

    def test_a_source_returns_what_was_published(self):
        producer = self.producer()
        keys = np.arange(1000)
        producer.publish(1, None, {"a": (keys, rows_of(1, keys))}, files={"dense.bin": b"\0weights"}, run="r")
        with producer.delta(2, 1, {"a": {"dim": 2, "rows": 999}, "s": {"dim": 1, "by_slot": True}}, run="r") as delta:
            delta.removed("a", [7])
            delta.rows("s", [5, 5], [[1], [2]], slots=[0, 3])
        source = stream.DeltaSource(self.kafka.brokers, "t")
        first = source.next(30)
        self.assertEqual((first.run, first.iteration, first.base), ("r", 1, None))
        self.assertEqual(first.files, {"dense.bin": b"\0weights"})
        self.assertTrue(np.array_equal(first.tables["a"].keys, keys))
        self.assertTrue(np.array_equal(first.tables["a"].vectors, rows_of(1, keys)))
        self.assertEqual(source.next(30).iteration, 1)  # next() returns the same delta until taken() is called
        source.taken()
        position = source.position
        second = source.next(30)
        self.assertEqual((second.base, second.tables["a"].removed.tolist(), second.tables["a"].rows), (1, [7], 999))
        self.assertEqual(second.tables["s"].slots.tolist(), [0, 3])
        self.assertEqual(second.tables["a"].vectors.shape, (0, 2))
        source.taken()
        self.assertIsNone(source.next(0))
        self.assertTrue(source.caught_up())
        self.assertEqual(source.statistics["deltas"], 2)
        source.close()
        again = stream.DeltaSource(self.kafka.brokers, "t", position=position, run="r", iteration=1)
        self.assertEqual(again.next(30).iteration, 2)
        again.close()

    def test_a_delta_whose_block_raises_is_never_seen(self):
        producer = self.producer()
        with self.assertRaises(ZeroDivisionError):
            with producer.delta(1, None, {"a": 2}) as delta:
                delta.rows("a", [1], [[1, 2]])
                raise ZeroDivisionError
        producer.publish(2, None, {"a": ([3], [[3, 4]])})
        with stream.DeltaSource(self.kafka.brokers, "t") as source:
            self.assertEqual(source.next(30).iteration, 2)

    def test_a_store_follows_and_continues(self):
        producer = self.producer()
        keys = np.arange(50)
        producer.publish(1, None, {"a": (keys, rows_of(1, keys))})
        config = {
            "folder": "levels",
            "models": [
                {"name": "m", "tables": [{"name": "a", "dim": 2}], "stream": {"brokers": self.kafka.brokers, "topic": "t"}}
            ],
        }
        with store.Store(config) as first:
            self.assertTrue(np.array_equal(first.view("m").get("a", keys), rows_of(1, keys)))
            follower = first.follow("m", self.kafka.brokers, "t")
            follower.start()
            producer.publish(2, 1, {"a": ([3, 60], rows_of(2, [3, 60]))}, removed={"a": [4]})
            end = time.monotonic() + 60
            while follower.statistics["applied"] == 0 and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual((follower.statistics["applied"], follower.statistics["error"]), (1, ""))
            view = first.view("m")
            self.assertTrue(np.array_equal(view.get("a", [3, 60]), rows_of(2, [3, 60])))
            self.assertEqual(view.get("a", [4], found=True)[1].tolist(), [False])
        producer.publish(3, 2, {"a": ([3], rows_of(3, [3]))})
        with store.Store(config, loads=False) as second:
            self.assertEqual(second.follow("m", self.kafka.brokers, "t").catch_up(), 1)
            self.assertTrue(np.array_equal(second.view("m").get("a", [3, 60]), [rows_of(3, [3])[0], rows_of(2, [60])[0]]))

    def test_errors_say_what_is_expected(self):
        producer = self.producer(wait=1)
        with self.says(huge_ctr.UsageError, "tables are 'a'"):
            with producer.delta(1, None, {"a": 2}) as delta:
                delta.rows("b", [1], [[1, 2]])
        with self.says(huge_ctr.UsageError, "shape [1, 3]"):
            with producer.delta(1, None, {"a": 2}) as delta:
                delta.rows("a", [1], [[1, 2, 3]])
        with self.says(huge_ctr.UsageError, "dims="):
            producer.publish(1, None, removed={"a": [1]})
        with self.says(huge_ctr.DataError, "not finite"):
            producer.publish(1, None, {"a": ([1], [[1, np.nan]])})
        with self.says(huge_ctr.UsageError, "name=value"):
            stream.DeltaSource(self.kafka.brokers, "t", librdkafka={"": "x"})
        self.kafka.command("down 1")
        with self.says(huge_ctr.FileError, "topic 't'"):
            producer.publish(1, None, {"a": ([1], [[1, 2]])})


if __name__ == "__main__":
    unittest.main()
