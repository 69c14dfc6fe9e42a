"""Pairs of results that really differ, from races on the CPU: how many have the same digest? None may.

python tests/breadth/digest_pairs.py [PAIRS]     # 5000 unless given
"""

from __future__ import annotations

import itertools
import sys

import torch

from d9mlint.trace.digest import digest

RUNS = 40
"""Executions of one operation; every two results that differ are a pair."""


def results(kind: str, seed: int) -> list[torch.Tensor]:
    """Results of one racing operation."""
    generator = torch.Generator().manual_seed(seed)
    bins = 100 + 37 * seed
    index = torch.randint(0, bins, (1 << 18,), generator=generator)
    source = torch.randn(1 << 18, generator=generator)
    found = []
    for _ in range(RUNS):
        out = torch.zeros(bins)
        if kind == "index_put_":
            out.index_put_((index,), source, accumulate=True)
        elif kind == "put_":
            out.put_(index, source, accumulate=True)
        else:
            weight = torch.zeros(bins, requires_grad=True)
            (weight[index] * source).sum().backward()
            assert weight.grad is not None
            out = weight.grad
        found.append(out)
    return found


def main() -> int:
    """Returns 1 where a pair has the same digest."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    torch.set_num_threads(max(2, torch.get_num_threads()))
    pairs = missed = equal = wrong = 0
    for seed in itertools.count():
        for kind in ("index_put_", "put_", "backward of x[index]"):
            found = [(t, t.numpy().tobytes(), digest(t)) for t in results(kind, seed)]
            for (_, data, one), (_, other_data, other) in itertools.combinations(found, 2):
                if data == other_data:
                    equal += 1
                    wrong += one != other
                else:
                    pairs += 1
                    missed += one == other
        if pairs >= wanted or seed >= 100:
            break
    print(f"{pairs} differing pairs, {missed} missed; {equal} equal pairs, {wrong} told apart")
    return 1 if missed or wrong or pairs < wanted else 0


if __name__ == "__main__":
    sys.exit(main())
