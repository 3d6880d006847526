#!/usr/bin/env python3
"""Converts sequences of items, one user per line, to samples "will this user take this item next?" in Norm files.

A sample has four slots: the earlier items, in order; the candidate item; and the categories of both. Every event after
a user's first one yields two samples: the item that the user took (label 1), and an item that the user never took, drawn
uniformly (label 0). The last event of each user is held out for evaluation; all others are for training, in an order
that depends on the seed. Draws are a pure function of seed, user and event, so the same call writes the same bytes.

--inner omits the last event and holds out the event before it: use it to choose settings.
"""
import argparse
import gzip
import json
import os
import struct

MASK = (1 << 64) - 1


def mix64(x):
    """The finalizer of SplitMix64."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def draw(limit, *counters):
    """A random number below `limit` that depends only on the arguments."""
    bits = 0
    for counter in counters:
        bits = mix64(bits ^ counter)
    return bits % limit


def read_users(folder):
    """Yields (user, [items in time order]) for every line."""
    with gzip.open(os.path.join(folder, "sequences.txt.gz"), "rt") as lines:
        for line in lines:
            user, *items = map(int, line.split())
            yield user, items


def read_categories(folder):
    """The category of each item: its last attribute, the deepest level of the category path."""
    with gzip.open(os.path.join(folder, "item2attributes.json.gz"), "rt") as text:
        return {int(item): attributes[-1] for item, attributes in json.load(text).items()}


def slot(keys):
    return struct.pack(f"<{1 + len(keys)}I", len(keys), *keys)


class Maker:
    def __init__(self, items, categories, seed):
        self.items, self.categories, self.seed = items, categories, seed

    def item_not_of(self, user, event, own):
        """Draws items until one is not among the user's own."""
        for attempt in range(1 << 16):
            item = self.items[draw(len(self.items), self.seed, user, event, attempt)]
            if item not in own:
                return item
        raise SystemExit(f"user {user} has every item")

    def sample(self, label, history, target):
        of = self.categories
        return struct.pack("<f", label) + slot(history) + slot([target]) + slot([of[i] for i in history]) + slot([of[target]])

    def samples(self, user, events, event, own):
        """The two samples for predicting `event`."""
        history = events[:event]
        return [self.sample(1, history, events[event]), self.sample(0, history, self.item_not_of(user, event, own))]


def block(payload):
    """A block of a Norm file: length, bytes, and the sum of the bytes, as with "check": "Sum"."""
    return struct.pack("<i", len(payload)) + payload + bytes([sum(payload) & 255])


def write_set(folder, name, samples):
    data = f"{name}.data"
    with open(os.path.join(folder, data), "wb") as file:
        file.write(block(struct.pack("<8q", 1, len(samples), 1, 0, 4, 0, 0, 0)))
        for sample in samples:
            file.write(block(sample))
    with open(os.path.join(folder, f"{name}.txt"), "w") as file:
        file.write(f"1\n{data}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sequences", help="folder with sequences.txt.gz and item2attributes.json.gz")
    parser.add_argument("out", help="folder for train.txt, val.txt and the data files that they list")
    parser.add_argument("--users", type=int, default=0, help="number of users, taken at equal distances; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inner", action="store_true", help="hold out the event before the last one, and omit the last one")
    arguments = parser.parse_args()

    users = list(read_users(arguments.sequences))
    if 0 < arguments.users < len(users):
        users = [users[i * len(users) // arguments.users] for i in range(arguments.users)]
    items = sorted({item for _, events in users for item in events})
    maker = Maker(items, read_categories(arguments.sequences), arguments.seed)

    train, held_out = [], []
    for user, events in users:
        own = set(events)  # includes later items: an item that the user takes later is not a negative
        last = len(events) - (2 if arguments.inner else 1)
        for event in range(1, last):
            train += maker.samples(user, events, event, own)
        held_out += maker.samples(user, events, last, own)
    order = sorted(range(len(train)), key=lambda i: mix64(mix64(arguments.seed) ^ i))
    os.makedirs(arguments.out, exist_ok=True)
    write_set(arguments.out, "train", [train[i] for i in order])
    write_set(arguments.out, "val", held_out)
    print(f"{len(users)} users, {len(items)} items: {len(train)} samples to train on, {len(held_out)} held out")


if __name__ == "__main__":
    main()
