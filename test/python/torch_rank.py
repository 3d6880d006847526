"""A process of test_torch_ranks.py: torch_rank.py FOLDER [load|save], alone or started by torchrun. With
HCTR_TORCH_DEVICE=cuda, rank r uses GPU r.
"""

import os
import sys
from datetime import timedelta

import huge_ctr.torch as hct
import torch

SAMPLES = 12
ON_GPUS = os.environ.get("HCTR_TORCH_DEVICE") == "cuda"
DEVICE = "cuda" if ON_GPUS else "cpu"


class Model(torch.nn.Module):
    def __init__(self, bags, top):
        super().__init__()
        self.bags, self.top = bags, top

    def forward(self, keys):
        return self.top(torch.relu(self.bags(keys).values())).square().mean()


def model(update):
    torch.manual_seed(5)
    tables = [
        hct.EmbeddingBagConfig(name="grows", embedding_dim=4, feature_names=["x", "y"], placement="spread"),
        hct.EmbeddingBagConfig(
            name="fixed", embedding_dim=3, num_embeddings=50, feature_names=["y"], placement="whole"
        ),
        hct.EmbeddingBagConfig(
            name="copied", embedding_dim=2, num_embeddings=50, feature_names=["x"], placement="replicated"
        ),
    ]
    bags = hct.EmbeddingBagCollection(tables, optimizer="adam", lr=0.05, update=update, device=DEVICE)
    return bags, torch.nn.Linear(13, 1).to(DEVICE)


def part_of(step, rank, size):
    """This rank's samples of a global batch."""
    draw = torch.Generator().manual_seed(step)
    keys = torch.randint(0, 50, (2, SAMPLES, 2), generator=draw)
    mine = slice(rank * SAMPLES // size, (rank + 1) * SAMPLES // size)
    values = keys[:, mine].reshape(-1).to(DEVICE)
    lengths = torch.full((values.numel() // 2,), 2, device=DEVICE)
    return hct.KeyedJaggedTensor(["x", "y"], values, lengths=lengths)


def mean_of_all(value, size):
    """The mean over all ranks, computed by PyTorch's process group, whose communicator must work between our calls."""
    if size > 1:
        torch.distributed.all_reduce(value)
    return value / size


def deltas_of_a_table(rank, size):
    """The changes of a table after steps and erased keys, in two parts."""
    table = hct.DynamicEmbedding(2, name="deltas", optimizer="sgd", lr=0.5, placement="spread", average=False, device=DEVICE)
    found = {}
    for part in range(2):
        for step in range(2):
            keys = part_of(10 * part + step, rank, size).values() + 40 * part
            table(keys).sum().backward()
        erased = table.erase(torch.tensor([1, 2, 60], device=DEVICE))
        keys, vectors, gone = table.deltas()
        found.update({f"deltas {part}": (keys, vectors), f"gone {part}": gone, f"erased {part}": erased})
    return found


def main():
    folder, load, save = sys.argv[1], sys.argv[2:] == ["load"], sys.argv[2:] == ["save"]
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(1)
    if ON_GPUS:
        torch.cuda.set_device(rank)
    if size > 1:
        torch.distributed.init_process_group("nccl" if ON_GPUS else "gloo", timeout=timedelta(seconds=120))
    found = {}
    for update in ("backward", "step"):
        bags, top = model(update)
        step, dense = hct.optimizer(bags), torch.optim.SGD(top.parameters(), lr=0.1)
        whole = Model(bags, top)
        if load:
            hct.load_checkpoint(f"{folder}/saved_{update}", whole, [step, dense])
        wrapped = torch.nn.parallel.DistributedDataParallel(whole) if size > 1 else whole
        for number in range(4 if load else 0, 8):
            if number == 4 and save:
                hct.save_checkpoint(f"{folder}/saved_{update}", whole, [step, dense])
            for one in (step, dense):
                one.zero_grad()
            loss = wrapped(part_of(number, rank, size))
            loss.backward()
            if update == "step":
                torch.nn.utils.clip_grad_norm_([bags.anchor], 0.05)
            for one in (step, dense):
                one.step()
            loss = mean_of_all(loss.detach().reshape(1), size)
            if number >= 4:
                found[f"{update} loss {number}"] = loss
        with torch.no_grad():
            found[f"{update} vectors"] = bags(part_of(100, rank, size)).values()
        for name in ("grows", "fixed", "copied"):
            found[f"{update} rows {name}"] = bags.rows(name)
            found[f"{update} {name}"] = bags.export(name)
        found[f"{update} top"] = top.weight.detach()
    found.update(deltas_of_a_table(rank, size))
    if rank == 0:
        torch.save(found, f"{folder}/found{size}{'load' if load else ''}.pt")
    if size > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
